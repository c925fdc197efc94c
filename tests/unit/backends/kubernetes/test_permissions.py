"""Which permissions are missing; the documentation has all."""

from pathlib import Path

import yaml

import tfdeploy.backends.kubernetes
from tests.pages import ROOT
from tests.unit.backends.kubernetes.fake_api import FakeApi
from tfdeploy.backends.kubernetes.permissions import NEEDED, TRY_PODS, missing, refusal


def test_what_is_missing_is_named_by_verb_and_resource() -> None:
    assert missing(FakeApi({})) == ()
    api = FakeApi({}, ["get namespaces", "create pods/exec", "create pods"])
    assert refusal(api, missing(api)) == "you may not get namespaces, create pods/exec in training"
    assert missing(api, TRY_PODS) == TRY_PODS


def test_the_documentation_has_all_rules_in_a_role_and_what_previews_read_beside_them() -> None:
    in_namespace, for_all = yaml.safe_load_all((ROOT / "docs/kubernetes-role.yaml").read_text())
    assert (in_namespace["kind"], for_all["kind"]) == ("Role", "ClusterRole")
    rules = {
        (group, resource, verb)
        for rule in in_namespace["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    needed = {(item.group, item.resource, item.verb) for item in NEEDED}
    assert needed <= rules
    assert {resource for _, resource, _ in rules - needed} == {
        *("resourcequotas", "serviceaccounts", "localqueues", "pods")
    }


def test_the_documentation_has_no_resource_that_this_package_does_not_call() -> None:
    folder = Path(tfdeploy.backends.kubernetes.__file__).parent
    sources = "".join(path.read_text().lower() for path in folder.rglob("*.py") if path.name != "permissions.py")
    roles = yaml.safe_load_all((ROOT / "docs/kubernetes-role.yaml").read_text())
    resources = {name for role in roles for rule in role["rules"] for name in rule["resources"]}
    words = {name: name.rpartition("/")[2].removesuffix("s").removesuffix("ie") for name in resources}
    assert [name for name, word in sorted(words.items()) if word not in sources] == []
