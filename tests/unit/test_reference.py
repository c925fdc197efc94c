"""The reference page says what the code says."""

from tools.reference import TARGET, reference


def test_the_reference_is_made_from_the_code() -> None:
    assert TARGET.read_text() == reference(), "run: python -m tools.reference"
