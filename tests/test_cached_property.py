"""What is computed once for each object, also in a process that is forked while another thread computes."""

import os
import threading

import pytest

from deuteron.cached_property import cached_property


class Squares:
    def __init__(self, number, wait=lambda: None):
        self.number, self.wait, self.count = number, wait, 0

    @cached_property
    def square(self):
        """The number times itself."""
        self.count += 1
        self.wait()
        return self.number**2


def test_it_is_computed_once_for_each_object():
    three, four = Squares(3), Squares(4)
    assert [three.square, three.square, four.square, three.count] == [9, 9, 16, 1]
    assert Squares.square.__doc__ == "The number times itself."


def test_what_several_threads_make_first_stays():
    barrier, found = threading.Barrier(4), []

    class Kernel:
        @cached_property
        def launch(self) -> object:
            """Loads it."""
            barrier.wait(10)
            return object()

    kernel = Kernel()
    threads = [threading.Thread(target=lambda: found.append(kernel.launch)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [kernel.launch] * 4
    assert Kernel.launch.__doc__ == "Loads it."


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_no_lock_is_left_in_a_forked_process():
    entered, left = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: Squares(3, lambda: (entered.set(), left.wait(60))).square)
    thread.start()
    entered.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if Squares(4).square == 16 else 1)
    left.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
