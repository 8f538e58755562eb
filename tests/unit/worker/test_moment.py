from leaseq.entrypoints.worker.moment import Moment, read_moment


def test_the_clock_that_saw_more_time_pass_is_believed() -> None:
    start = Moment(100, 1000)

    assert Moment(105, 1005).since(start) == 5
    assert Moment(101, 1060).since(start) == 60
    assert Moment(105, 400).since(start) == 5


def test_time_goes_on() -> None:
    first = read_moment()

    assert read_moment().since(first) >= 0
