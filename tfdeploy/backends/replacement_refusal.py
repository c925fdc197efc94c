"""Resources of a cluster that Pulumi must not replace while they exist, because a second one would have the same name.

`pulumi up --replace`, `pulumi state taint`, `replace_on_changes` and the like create the new resource first. A hook refuses that, in
the preview too, so that nothing is deleted.
"""

import pulumi
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import monitor_supports_feature

from ..errors import BackendError


def not_replaced(resource: str, effect: str, remedy: str) -> pulumi.ResourceOptions:
    """Options for the existing resource of that name. `effect` is what its replacement would do, and `remedy` what to do instead."""
    if not monitor_supports_feature(resource_pb2.RESOURCE_MONITOR_FEATURE_RESOURCE_HOOKS):
        return pulumi.ResourceOptions()

    def refuse(args: pulumi.ResourceHookArgs) -> None:
        untaint = f"`pulumi state untaint '{args.urn}'` if the state marks it as tainted"
        without = f"Update without replacing it (`--replace`, replace_on_changes; {untaint})"
        raise BackendError(
            f"{resource} is not replaced, because that {effect}. Nothing was deleted. {without}. {remedy}"
        )

    on_dry_run = pulumi.ResourceHookOptions(on_dry_run=True)
    hook = pulumi.ResourceHook(f"{resource}-not-replaced", refuse, on_dry_run)
    return pulumi.ResourceOptions(hooks=pulumi.ResourceHookBinding(before_create=[hook]))
