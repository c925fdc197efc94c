"""`tfdeploy import-tfjob`: from the YAML of a TFJob to a program."""

import sys
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from ...errors import SpecError, file_error
from ...spec.cluster import cluster_spec
from ...units import counted
from ..output import print_message, print_result
from ..parser import Parser
from ..tfjob.conversion import API_VERSION, KIND, Conversion, convert, program

_BACKEND = "kubernetes"


def add_arguments(parser: Parser) -> None:
    """Its options and arguments."""
    parser.add_argument("file", metavar="FILE", help="YAML of a TFJob; - for the standard input.")


def import_tfjob(options: Namespace) -> None:
    """Print the program that a TFJob becomes.

    It is `__main__.py` of a Pulumi project. Fields without a counterpart are comments in it.
    """
    file: str = options.file
    jobs, others = [], []
    for manifest in _manifests(file):
        kind, version = str(manifest.get("kind")), str(manifest.get("apiVersion"))
        if kind == KIND and version == API_VERSION:
            jobs.append(_checked(convert(manifest)))
        elif kind == KIND:
            wrong = f"the {KIND} is of {version!r}, not of {API_VERSION}"
            raise SpecError(file, wrong, "Convert it first: kubectl get tfjob NAME --output yaml.")
        else:
            metadata = manifest.get("metadata")
            name = metadata.get("name", "") if isinstance(metadata, Mapping) else ""
            others.append(f"{kind} {name}: apply it by kubectl as before.")
    if not jobs:
        raise SpecError(file, f"there is no {KIND} of {API_VERSION} in it", "Give the file with the TFJob.")
    print_result(program(jobs, others).rstrip())
    notes = sum(len(job.notes) for job in jobs)
    if notes:
        print_message(f"{counted(notes, 'field')} of the TFJob: see the comments of the program.")
    print_message(f"Before `pulumi up`: pulumi config set tfdeploy:backend {_BACKEND}")
    for name in dict.fromkeys(name for job in jobs for name in job.secrets):
        print_message(f"And: pulumi config set --secret {name}")


def _manifests(file: str) -> list[Mapping[str, Any]]:
    """The manifests of a file, those of lists included.

    Raises:
        SpecError: the file is not YAML with manifests.
    """
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except OSError as error:
        raise SpecError(file, file_error(error), "Give the file with the TFJob.") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise SpecError(file, f"it is not YAML ({str(error).splitlines()[0]})", "Correct it.") from None
    manifests: list[Mapping[str, Any]] = []
    for document in documents:
        items = document.get("items") if isinstance(document, Mapping) and document.get("kind") == "List" else None
        for manifest in items if isinstance(items, list) else [document]:
            if not isinstance(manifest, Mapping):
                raise SpecError(file, "it has a document that is not a manifest", "Give the file with the TFJob.")
            manifests.append(manifest)
    return manifests


def _checked(conversion: Conversion) -> Conversion:
    """The same, with a note where the arguments are refused as they are."""
    secrets = {"secrets": dict.fromkeys(conversion.secrets, "")} if conversion.secrets else {}
    try:
        cluster_spec(conversion.name, {**conversion.args, **secrets, "backend": _BACKEND})
    except SpecError as error:
        return replace(conversion, notes=(*conversion.notes, f"`pulumi up` refuses this: {error}"))
    return conversion
