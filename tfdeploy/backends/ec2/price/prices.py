"""Prices of machines, disks and addresses, from `prices.csv`. Pure.

A price that the table does not have is unknown, never 0. A spot instance counts as on demand, which is the most that it can cost.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ....units import counted, dollars

ENDING_SECONDS = 420.0
"""How long a machine may outlive its lifetime: the manager waits for the other machines and for the upload of the record."""

_HOUR = 3600.0
_HOURS_A_MONTH = 720.0
"""The length of a month for EBS. https://aws.amazon.com/ebs/pricing/"""

_SIZES = {"nano": 1 / 16, "micro": 1 / 8, "small": 1 / 4, "medium": 1 / 2, "large": 1.0, "xlarge": 2.0}
_XLARGE = re.compile(r"([0-9]+)xlarge")


@dataclass(frozen=True)
class PriceTable:
    """The prices of one day."""

    date: str
    rows: Mapping[str, Mapping[str, float]]
    """Name of a row (an instance type, a family, `ebs gp3`, `efs`, …) to region to USD."""


@dataclass(frozen=True)
class Amount:
    """A sum of money, parts of which may be unknown."""

    usd: float = 0.0
    """The known part."""
    unknown: tuple[str, ...] = ()
    """One text for each machine with an unknown price: the parts without a price."""
    is_maximum: bool = False
    """True where `usd` may be more than the bill."""

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.usd + other.usd, (*self.unknown, *other.unknown), self.is_maximum or other.is_maximum)

    @property
    def known(self) -> float | None:
        """The sum in USD; None where a part is unknown."""
        return None if self.unknown else round(self.usd, 4)

    def text(self, per: str = "") -> str:
        """The sum as text: `at most $1.23/h` for `per="/h"`."""
        number = f"{dollars(self.usd)}{per}"
        if not self.unknown:
            return f"at most {number}" if self.is_maximum else number
        names = ", ".join(sorted(set(self.unknown)))
        bound = "" if self.is_maximum else "at least "
        return f"{bound}{number}, plus {counted(len(self.unknown), 'machine')} with unknown prices ({names})"


@cache
def price_table() -> PriceTable:
    """The table of this package; it is read at the first call."""
    lines = files(__package__).joinpath("prices.csv").read_text(encoding="utf-8").splitlines()
    date = next(line for line in lines if line.startswith("# at:")).partition(":")[2].strip()
    header, *rows = (line.split(",") for line in lines if not line.startswith("#"))
    prices = {
        name: {region: float(cell) for region, cell in zip(header[1:], cells, strict=True) if cell}
        for name, *cells in rows
    }
    return PriceTable(date, prices)


def instance_price(instance_type: str, region: str) -> float | None:
    """USD per hour on demand; None where the table does not have it."""
    rows = price_table().rows
    family, _, size = instance_type.partition(".")
    if size and instance_type in rows:
        return rows[instance_type].get(region)
    large = rows.get(family, {}).get(region)
    multiple = _XLARGE.fullmatch(size)
    factor = 2.0 * int(multiple[1]) if multiple else _SIZES.get(size)
    return large * factor if large is not None and factor else None


def storage_price(row: str, gib: float, region: str) -> float | None:
    """USD per hour for so much storage of a kind that AWS bills by the month; None where the table does not have it."""
    month = price_table().rows.get(row, {}).get(region)
    return None if month is None else month * gib / _HOURS_A_MONTH


def hourly_cost(
    instance_type: str,
    region: str,
    *,
    spot: bool = False,
    disks: Iterable[tuple[str, int]] = (),
    public_ip: bool = True,
) -> Amount:
    """The cost of one machine per hour: the instance, its disks (the kind and the GiB of each), its public address."""
    parts = [(instance_type, instance_price(instance_type, region))]
    parts += [(f"{kind} disk", storage_price(f"ebs {kind}", gib, region)) for kind, gib in disks]
    parts += [("public address", price_table().rows["ipv4"].get(region))] if public_ip else []
    missing = list(dict.fromkeys(name for name, usd in parts if usd is None))
    usd = sum(usd for _, usd in parts if usd is not None)
    return Amount(usd, (" and ".join(missing),) if missing else (), spot)


def total(amounts: Iterable[Amount]) -> Amount:
    """The sum of amounts."""
    return sum(amounts, Amount())


def cost_over(hourly: Amount, seconds: float) -> Amount:
    """The cost of a period, from the cost per hour."""
    return Amount(hourly.usd * seconds / _HOUR, hourly.unknown, hourly.is_maximum)


def maximum_cost(hourly: Amount, lifetime: float) -> Amount | None:
    """The most that machines cost until they terminate themselves after `lifetime` seconds; None without a lifetime (0)."""
    return cost_over(hourly, lifetime + ENDING_SECONDS) if lifetime else None


def monthly_price(row: str, region: str) -> str:
    """The price of storage as text."""
    month = price_table().rows[row].get(region)
    return "price unknown" if month is None else f"{dollars(month)} per GiB and month"
