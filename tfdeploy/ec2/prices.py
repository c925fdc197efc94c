"""What machines cost, by the table in this package. Pure.

A price that the table lacks is unknown, never 0; a spot instance counts as if it were on demand, which is the most that it costs.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ..instances import NEW
from ..quantities import counted, dollars, text_of_seconds

CURRENCY = "USD"

LEAST_SECONDS = 60.0
"""A machine that ran for less is billed for so long. https://aws.amazon.com/ec2/pricing/on-demand/"""

ENDING_SECONDS = 420.0
"""How much longer than its lifetime a machine may stand: the one that manages waits for the others, and for the record."""

_HOUR = 3600.0
_HOURS_A_MONTH = 720.0
"""As EBS counts a month. https://aws.amazon.com/ebs/pricing/"""

_SIZES = {"nano": 1 / 16, "micro": 1 / 8, "small": 1 / 4, "medium": 1 / 2, "large": 1.0, "xlarge": 2.0}
_XLARGE = re.compile(r"([0-9]+)xlarge")


@dataclass(frozen=True)
class Table:
    """The prices of one day."""

    at: str
    rows: Mapping[str, Mapping[str, float]]
    """What costs to region to USD."""


@dataclass(frozen=True)
class Disk:
    """A disk that is made for a machine."""

    kind: str
    gib: int


@dataclass(frozen=True)
class Rented:
    """One machine, as it is paid for."""

    instance_type: str
    spot: bool = False
    disks: tuple[Disk, ...] | None = ()
    """None where nobody knows them."""
    public_ip: bool = True


@dataclass(frozen=True)
class Amount:
    """A sum of money."""

    usd: float = 0.0
    """What is known of it."""
    unknown: tuple[str, ...] = ()
    """For each machine of which the price is not wholly known, what of it is not."""
    most: bool = False
    """Whether `usd` may be more than is billed."""

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.usd + other.usd, (*self.unknown, *other.unknown), self.most or other.most)

    @property
    def known(self) -> float | None:
        """The USD; None where something of the sum is unknown."""
        return None if self.unknown else round(self.usd, 4)

    def text(self, each: str = "") -> str:
        """The sum in words; `each` follows the number: `at most $1.23/h`."""
        told = f"{dollars(self.usd)}{each}"
        if not self.unknown:
            return f"at most {told}" if self.most else told
        names = ", ".join(sorted(set(self.unknown)))
        bound = "" if self.most else "at least "
        return f"{bound}{told}, and {counted(len(self.unknown), 'machine')} of unknown price ({names})"


@cache
def table() -> Table:
    """The table of this package, read when it is first asked for."""
    lines = files(__package__).joinpath("prices.csv").read_text(encoding="utf-8").splitlines()
    at = next(line for line in lines if line.startswith("# at:")).partition(":")[2].strip()
    first, *rest = (line.split(",") for line in lines if not line.startswith("#"))
    rows = {
        what: {region: float(cell) for region, cell in zip(first[1:], cells, strict=True) if cell}
        for what, *cells in rest
    }
    return Table(at, rows)


def of_type(instance_type: str, region: str) -> float | None:
    """USD for an hour, on demand; None where the table lacks it."""
    rows = table().rows
    family, _, size = instance_type.partition(".")
    if size and instance_type in rows:
        return rows[instance_type].get(region)
    large = rows.get(family, {}).get(region)
    many = _XLARGE.fullmatch(size)
    factor = 2.0 * int(many[1]) if many else _SIZES.get(size)
    return large * factor if large is not None and factor else None


def of_disk(disk: Disk, region: str) -> float | None:
    """USD for an hour; None where the table lacks it."""
    month = table().rows.get(f"ebs {disk.kind}", {}).get(region)
    return None if month is None else month * disk.gib / _HOURS_A_MONTH


def per_hour(machine: Rented, region: str) -> Amount:
    """What one machine costs for an hour: itself, its disks, its public address."""
    parts = [(machine.instance_type, of_type(machine.instance_type, region))]
    parts += [(f"{disk.kind} disk", of_disk(disk, region)) for disk in machine.disks or ()]
    parts += [("disks", None)] if machine.disks is None else []
    parts += [("public address", table().rows["ipv4"].get(region))] if machine.public_ip else []
    lacking = list(dict.fromkeys(name for name, usd in parts if usd is None))
    usd = sum(usd for _, usd in parts if usd is not None)
    return Amount(usd, (" and ".join(lacking),) if lacking else (), machine.spot)


def total(amounts: Iterable[Amount]) -> Amount:
    """The sum of sums."""
    return sum(amounts, Amount())


def over(hourly: Amount, seconds: float) -> Amount:
    """What so much an hour is for so long."""
    return Amount(hourly.usd * seconds / _HOUR, hourly.unknown, hourly.most)


def maximum(hourly: Amount, lifetime: float) -> Amount | None:
    """The most that machines cost until they end themselves after `lifetime` seconds; None where they never do (0)."""
    return over(hourly, lifetime + ENDING_SECONDS) if lifetime else None


def beyond(hourly: Amount, lifetime: float, budget: float) -> tuple[str, str] | None:
    """Why a plan is refused that shall cost at most `budget` USD, and what would do; None where it is not, or no budget (0) is set."""
    if not budget:
        return None
    most = maximum(hourly, lifetime)
    if most is None:
        return (
            f"is {dollars(budget)}, and the machines never end themselves: what they cost has no bound",
            'Give a lifetime, such as "72h", or leave the budget out.',
        )
    if most.unknown:
        names = ", ".join(sorted(set(most.unknown)))
        return (
            f"is {dollars(budget)}, and the prices of {table().at} do not have all that the plan needs: {names}",
            "Choose another type or region, or leave the budget out.",
        )
    if most.usd > budget:
        wrong = f"is {dollars(budget)}, and the plan may cost {dollars(most.usd)} ({hourly.text('/h')})"
        return (
            f"{wrong} until the machines end themselves after {text_of_seconds(lifetime)}",
            "Ask for fewer or smaller machines, or for a shorter lifetime, or raise the budget.",
        )
    return None


def after(region: str, efs: str, keep_record: bool, volumes: Sequence[str]) -> list[str]:
    """What bills on when the machines are gone, in sentences: `efs` and `volumes` as they were asked for."""
    said = []
    if efs == NEW:
        said.append(f"the file system (EFS), until `pulumi destroy`: {_a_month('efs', region)}")
    elif efs:
        said.append(f"your file system {efs}: {_a_month('efs', region)}")
    until = "also after `pulumi destroy`" if keep_record else "until `pulumi destroy`"
    said.append(f"the bucket with the record (S3), {until}: {_a_month('s3', region)}")
    return [*said, *(f"your volume {name}" for name in volumes)]


def sentence(hourly: Amount, lifetime: float, bills_on: Sequence[str]) -> str:
    """What a plan costs, in one line."""
    most = maximum(hourly, lifetime)
    bound = "and never end themselves, so there is no maximum"
    if most is not None:
        plain = Amount(most.usd, most.unknown)
        limit = plain.text() if most.unknown else f"at most {plain.text()}"
        bound = f"{limit} until they end themselves after {text_of_seconds(lifetime)}"
    spot = "; spot counts as on demand" if hourly.most else ""
    return (
        f"the machines cost {hourly.text('/h')}, {bound}; prices of {table().at}{spot}; "
        f"after the machines go these cost on: {'; '.join(bills_on) or 'nothing'}"
    )


def _a_month(what: str, region: str) -> str:
    month = table().rows[what].get(region)
    return "at an unknown price" if month is None else f"{dollars(month)} for each GiB and month"
