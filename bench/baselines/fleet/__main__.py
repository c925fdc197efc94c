"""A component with a stored id, a first resource, as many others as configured, and a last one."""

import pulumi

from bench.baselines.pieces import Piece


class Fleet(pulumi.ComponentResource):
    """As many resources as a cluster of that many tasks has, with the same dependencies."""

    keys: pulumi.Output[list[str]]

    def __init__(self, name: str, tasks: int) -> None:
        super().__init__("fleet:index:Fleet", name)
        owner = {"kind": "bare", "project": "fleet", "stack": "dev", "name": name, "home": "/nowhere/in/particular"}
        pulumi.Stash(f"{name}-id", input=owner, opts=pulumi.ResourceOptions(parent=self))
        first = Piece(f"{name}-first", {"name": "first", "owner": owner}, pulumi.ResourceOptions(parent=self))
        after_first = pulumi.ResourceOptions(parent=self, depends_on=[first])
        names = [f"worker-{index}" for index in range(tasks)]
        pieces = [
            Piece(
                f"{name}-{piece}",
                {
                    "owner": owner,
                    "token": first.key,
                    "name": piece,
                    "job": "worker",
                    "index": index,
                    "machine": "this",
                    "memory": 0,
                    "cpus": 0,
                    "gpus": "",
                    "port": 0,
                    "grace": 10,
                },
                after_first,
            )
            for index, piece in enumerate(names)
        ]
        members = [{"name": piece, "job": "worker", "index": index} for index, piece in enumerate(names)]
        last = Piece(
            f"{name}-last",
            {"name": "last", "owner": owner, "token": first.key, "run": {"command": ["true"], "members": members}},
            pulumi.ResourceOptions(parent=self, depends_on=[first, *pieces]),
        )
        self.keys = pulumi.Output.all(first.key, last.key, *[piece.key for piece in pieces])
        self.register_outputs({"keys": self.keys})


fleet = Fleet("fleet", pulumi.Config().require_int("tasks"))
pulumi.export("keys", fleet.keys)
