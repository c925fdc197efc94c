"""What `pulumi destroy` keeps and removes names each place once."""

from tfdeploy.plan.retained_data import RetainedData, lines


def test_two_kinds_of_data_at_one_place_are_one_line() -> None:
    here, there = "/home/ada/retained/mnist", "s3://bucket"
    data = [
        RetainedData("record", here, True, 1024),
        RetainedData("checkpoints", here, True, 2048),
        RetainedData("volume", there, True),
        RetainedData("disk", there, False, 1),
    ]
    assert lines(data) == (
        "`pulumi destroy` keeps:",
        f"  record and checkpoints: {here}, 3 KiB",
        f"  volume: {there}",
        "`pulumi destroy` removes:",
        f"  disk: {there}, 1 B",
    )
