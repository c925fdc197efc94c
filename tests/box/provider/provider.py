"""The provider: what is the same for every resource type."""

import asyncio
import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from pulumi.provider.experimental import provider as wire
from pulumi.runtime.rpc import UNKNOWN

from tests.box.provider import ec2, efs, iam, instance, shapes, storage
from tests.box.provider.invokes import INVOKES
from tests.box.provider.kinds import Aws, Kind, Refused, missing
from tests.box.provider.values import MAPS, Props, changed, merged, plain, wrapped

T = TypeVar("T")

KINDS = {kind.token: kind for kind in (*ec2.KINDS, instance.KIND, *storage.KINDS, *efs.KINDS, *iam.KINDS)}

GIVEN = "__inputs"
"""In a state: the paths of the inputs. What starts so is the provider's own and not shown to anybody."""
CHOSEN = "__defaults"
"""In inputs: the names of those that the provider chose."""

SETTINGS = frozenset(
    {"region", "maxRetries", "profile", "assumeRoles", "allowedAccountIds", "forbiddenAccountIds", "defaultTags"}
)
IGNORED = frozenset({"version", "skipCredentialsValidation", "skipMetadataApiCheck"}) | frozenset(
    {"skipRegionValidation", "skipRequestingAccountId", "s3UsePathStyle"}
)


def kind_of(token: str) -> Kind:
    """The kind of a resource type; the SDK gives it with the types of its parents before it."""
    token = token.rpartition("$")[2]
    if token not in KINDS:
        raise Refused(f"the stand-in does not know {token}; known: {', '.join(sorted(KINDS))}")
    return KINDS[token]


def _own(props: Props) -> Props:
    """Without what is the provider's own."""
    return {name: value for name, value in props.items() if not name.startswith("__")}


def with_all_tags(kind: Kind, state: Props) -> Props:
    """What is there, with all its tags: also those of the provider."""
    return {**state, "tags": state.get("tagsAll", state.get("tags", {}))} if "tags" in kind.updates else state


def paths(kind: Kind, state: Props, news: Props) -> list[str]:
    """Where what is wanted differs from what is; the tags are all that there are, and all that are wanted."""
    old, new = with_all_tags(kind, _own(state)), kind.wanted(_own(news))
    if "tags" in kind.updates:
        new = {"tags": {}, **new}
    found = [path for name, value in new.items() for path in changed(name, old.get(name), value)]
    there, wanted = given(old), given(new)
    gone = [path for path in state.get(GIVEN, []) if path in kind.cleared and path in there and path not in wanted]
    return found + [path for path in gone if path.partition(".")[0] not in found]


def given(props: Props) -> list[str]:
    """The paths of properties: those of objects, and what is in them."""
    inside = [
        f"{name}.{part}"
        for name, value in props.items()
        if isinstance(value, dict) and name not in MAPS
        for part in value
    ]
    return sorted([*props, *inside])


def replacing(kind: Kind, found: list[str], news: Props) -> list[str]:
    """Those of these paths that need a new resource."""
    another = kind.either & set(found)
    return [path for path in found if kind.way(path, news) is None or (path in another and len(another) > 1)]


def followed(inputs: Props, state: Props, path: str) -> Props:
    """The input that a drift is in, as it has become."""
    name = path.partition(".")[0]
    now = state.get(name)
    if isinstance(now, dict) and isinstance(inputs.get(name), dict) and name not in MAPS:
        now = {key: now[key] for key in inputs[name] if key in now}
    return {} if now is None else {name: now}


def known(kind: Kind, given: Props) -> list[tuple[str, str]]:
    """What is wrong with the inputs: for the SDK, else for the stand-in."""
    wrong = shapes.problems(kind.token, given)
    if wrong:
        return wrong
    handled = (*kind.replaces, *kind.updates)
    for name, value in given.items():
        inside = any(path.startswith(f"{name}.") for path in handled)
        for path in [f"{name}.{part}" for part in value if value != UNKNOWN] if inside else [name]:
            try:
                kind.way(path, given)
            except Refused as error:
                wrong.append((path, str(error)))
    return wrong


def foreseen(kind: Kind, news: Props, all_tags: Props) -> Props:
    """The outputs of something that is not there yet."""
    computed = dict.fromkeys(shapes.outputs(kind.token) - set(news), UNKNOWN)
    tags = {"tags": news.get("tags", {}), "tagsAll": all_tags.get("tags", {})} if "tags" in kind.updates else {}
    return {**computed, **tags, **news}


class StandIn(wire.Provider):
    """Answers for `pulumi-resource-aws`."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(64)
        self._aws = Aws({})

    async def _call(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except (BotoCoreError, ClientError) as error:
            raise Refused(f"AWS: {str(error).splitlines()[0]}") from None

    async def check_config(self, request: wire.CheckRequest) -> wire.CheckResponse:
        """Refuse settings that the stand-in would not heed."""
        unheeded = set(request.new_inputs) - SETTINGS - IGNORED
        failures = [wire.CheckFailure(name, "the stand-in does not know this setting") for name in sorted(unheeded)]
        return wire.CheckResponse(request.new_inputs, failures)

    async def diff_config(self, request: wire.DiffRequest) -> wire.DiffResponse:
        """Settings change in place."""
        return wire.DiffResponse(changes=False)

    async def configure(self, request: wire.ConfigureRequest) -> wire.ConfigureResponse:
        """Take the settings; secrets and outputs as such are the engine's business."""
        self._aws = Aws(plain(request.args))
        await self._call(self._aws.check_account)
        return wire.ConfigureResponse(
            accept_secrets=False, supports_preview=True, accept_resources=False, accept_outputs=False
        )

    def _tagged(self, kind: Kind, news: Props) -> Props:
        """Inputs with the provider's own tags beside those of the program, which win."""
        tags = {**self._aws.default_tags, **news.get("tags", {})}
        return {**news, "tags": tags} if "tags" in kind.updates and tags else news

    async def invoke(self, request: wire.InvokeRequest) -> wire.InvokeResponse:
        """Call a function."""
        function = INVOKES.get(request.tok)
        if function is None:
            raise Refused(f"the stand-in does not know {request.tok}; known: {', '.join(sorted(INVOKES))}")
        given = plain(request.args)
        return wire.InvokeResponse(wrapped(await self._call(lambda: function(self._aws, given))))

    async def check(self, request: wire.CheckRequest) -> wire.CheckResponse:
        """Refuse what the SDK does not know, and what the stand-in would not carry out."""
        given, before = plain(request.new_inputs), plain(request.old_inputs)
        try:
            kind = kind_of(request.type)
        except Refused as error:
            return wire.CheckResponse(request.new_inputs, [wire.CheckFailure("", str(error))])
        wrong = known(kind, _own(given))
        if wrong:
            return wire.CheckResponse(request.new_inputs, [wire.CheckFailure(*one) for one in wrong])
        if kind.named and kind.named not in given:
            kept = before.get(kind.named) if kind.named in before.get(CHOSEN, []) else None
            suffix = hashlib.sha256(request.random_seed + request.urn.encode()).hexdigest()[:7]
            given |= {kind.named: kept or f"{request.name}-{suffix}", CHOSEN: [kind.named]}
        return wire.CheckResponse(wrapped(given))

    async def diff(self, request: wire.DiffRequest) -> wire.DiffResponse:
        """What an update would change, and whether in place."""
        kind = kind_of(request.type)
        state, news = plain(request.old_state), self._tagged(kind, plain(request.new_inputs))
        found = [
            path
            for path in paths(kind, state, news)
            if not any(path == name or path.startswith((f"{name}.", f"{name}[")) for name in request.ignore_changes)
        ]
        replaces = replacing(kind, found, news)
        kinds = wire.PropertyDiffKind
        detail = {path: kinds.UPDATE_REPLACE if path in replaces else kinds.UPDATE for path in found}
        fixed = bool(kind.named) and kind.named not in news.get(CHOSEN, []) and kind.named not in found
        return wire.DiffResponse(
            changes=bool(found),
            replaces=[path.partition(".")[0] for path in replaces],
            delete_before_replace=bool(replaces) and fixed,
            diffs=[path.partition(".")[0] for path in found],
            detailed_diff={path: wire.PropertyDiff(one, False) for path, one in detail.items()},
        )

    def _read(self, kind: Kind, key: str, declared: Props, inputs: Props) -> Props | None:
        """The state of what is there: what AWS does not tell is taken to be as it was."""
        observed = kind.read(self._aws, key, declared)
        if observed is None:
            return None
        region = {"region": self._aws.region(declared)} if "region" in shapes.outputs(kind.token) else {}
        return {
            **merged(_own(declared), observed),
            **region,
            **self._program_tags(observed, inputs),
            GIVEN: given(_own(inputs)),
        }

    def _program_tags(self, observed: Props, inputs: Props) -> Props:
        """The output `tags`: without those of the provider that the program does not give."""
        if "tags" not in observed:
            return {}
        defaults, own = self._aws.default_tags, inputs.get("tags", {})
        return {
            "tags": {
                name: value for name, value in observed["tags"].items() if name in own or defaults.get(name) != value
            }
        }

    async def create(self, request: wire.CreateRequest) -> wire.CreateResponse:
        """Make it, and tell what came of it."""
        kind, news = kind_of(request.type), plain(request.properties)
        if request.preview:
            return wire.CreateResponse("", wrapped(foreseen(kind, _own(news), self._tagged(kind, _own(news)))))

        def make() -> tuple[str, Props]:
            wanted = kind.wanted(_own(news))
            key = kind.create(self._aws, self._tagged(kind, wanted))
            state = self._read(kind, key, wanted, news)
            if state is None:
                raise Refused(f"{key} was made, and then it was gone")
            return key, state

        key, state = await self._call(make)
        return wire.CreateResponse(key, wrapped(state))

    async def read(self, request: wire.ReadRequest) -> wire.ReadResponse:
        """See what is there; inputs follow what they have become."""
        kind, key = kind_of(request.type), request.resource_id
        state, inputs = plain(request.properties), plain(request.inputs)
        found = await self._call(lambda: self._read(kind, key, _own(state), inputs))
        if found is None:
            return wire.ReadResponse("")
        for path in paths(kind, found, self._tagged(kind, inputs)):
            inputs |= followed(inputs, found, path)
        return wire.ReadResponse(key, wrapped(found), wrapped(inputs))

    async def update(self, request: wire.UpdateRequest) -> wire.UpdateResponse:
        """Change in place what differs."""
        kind, key = kind_of(request.type), request.resource_id
        state, news = plain(request.olds), plain(request.news)
        all_tagged = self._tagged(kind, kind.wanted(_own(news)))
        found = paths(kind, state, all_tagged)
        wanted = kind.wanted(_own(news))
        declared = merged({name: value for name, value in _own(state).items() if name not in found}, wanted)
        if request.preview:
            moved = {name: UNKNOWN for path in found for name in kind.moves.get(path, ())}
            tags = {"tagsAll": all_tagged.get("tags", {})} if "tags" in kind.updates else {}
            return wire.UpdateResponse(wrapped({**declared, **moved, **tags}))

        def change() -> Props:
            before = with_all_tags(kind, _own(state))
            for step in dict.fromkeys(way for path in found if (way := kind.way(path, news))):
                step(self._aws, key, before, all_tagged)
            after = self._read(kind, key, declared, news)
            if after is None:
                raise Refused(f"{key} was changed, and then it was gone")
            return after

        return wire.UpdateResponse(wrapped(await self._call(change)))

    async def delete(self, request: wire.DeleteRequest) -> None:
        """Take it away; what is gone already is no fault."""
        kind, state = kind_of(request.type), _own(plain(request.properties))

        def drop() -> None:
            try:
                kind.delete(self._aws, request.resource_id, state)
            except ClientError as error:
                if not missing(error):
                    raise

        await self._call(drop)
