"""What a process makes once, on many threads, after an error, and in a process that is forked while it is made."""

import os
import signal
import threading
import time

import pytest

from deuteron import forking
from deuteron.once import ForkLock, once


def test_threads_are_given_the_same():
    made, barrier, found = [], threading.Barrier(8), []

    @once
    def make():
        """Says what it makes."""
        time.sleep(0.01)
        made.append(object())
        return made[-1]

    def ask():
        barrier.wait()
        found.append(make())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1 and found == made * 8
    assert make.__name__ == "make" and make.__doc__ == "Says what it makes."
    make.forget()
    assert make() is not found[0]


def test_what_raises_is_tried_again():
    results = [None, KeyboardInterrupt()]

    @once
    def make():
        result = results.pop()
        if result is not None:
            raise result
        return result

    with pytest.raises(KeyboardInterrupt):
        make()
    assert make() is None and make() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_a_process_that_is_forked_while_another_thread_makes_it(monkeypatch):
    monkeypatch.setattr(forking, "LONGEST_WAIT", 0.05)  # for which it would wait
    begins, goes_on = threading.Event(), threading.Event()

    @once
    def make():
        begins.set()
        goes_on.wait(10)
        return "made"

    thread = threading.Thread(target=make)
    thread.start()
    begins.wait()
    child = os.fork()
    if not child:
        goes_on.set()
        os._exit(0 if make() == "made" else 1)
    try:
        deadline = time.monotonic() + 20
        while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < deadline:
            time.sleep(0.01)
        assert ended == (child, 0)
    finally:
        goes_on.set()
        thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_lock_is_free_in_a_forked_process():
    """Another thread holds it, or the one that forks."""
    lock, entered, left = ForkLock(), threading.Event(), threading.Event()

    def hold():
        with lock.here():
            entered.set()
            left.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()
    child = os.fork()
    if child == 0:
        with lock.here():
            os._exit(0)
    left.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    with lock.here():
        child = os.fork()
    if child == 0:
        os._exit(0 if lock.here().acquire(timeout=10) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert lock.here().acquire(timeout=0)


def test_a_signal_handler_asks_while_it_is_made():
    """It runs on the main thread; it gets the same, whose making it does not disturb."""
    found, begun, goes_on = [], threading.Event(), threading.Event()

    @once
    def made():
        begun.set()
        goes_on.wait(60)
        return object()

    def interrupt():
        begun.wait()
        os.kill(os.getpid(), signal.SIGUSR1)

    def handler(*_):
        goes_on.set()
        found.append(made())

    before = signal.signal(signal.SIGUSR1, handler)
    sender = threading.Thread(target=interrupt)
    sender.start()
    found.append(made())
    sender.join()
    signal.signal(signal.SIGUSR1, before)
    assert len(found) == 2 and found[0] is found[1]


def test_a_handler_that_raises_leaves_it_to_be_made():
    begun, goes_on, counts = threading.Event(), threading.Event(), []

    @once
    def made():
        counts.append(1)
        begun.set()
        goes_on.wait(60)
        return object()

    def interrupt():
        begun.wait()
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=interrupt)
    sender.start()
    with pytest.raises(KeyboardInterrupt):
        made()
    goes_on.set()
    sender.join()
    assert made() is made() and counts == [1]


def test_what_fails_on_the_main_thread_is_raised_there():
    @once
    def made():
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            made()
