"""The pool: who runs a task, what happens to its errors, and that the caller waits."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import pytest

from deuteron.backend.cpu.thread_pool import run_on_threads


@pytest.mark.parametrize("num_threads", [1, 2, 3, 4, 20])
def test_as_many_threads_run_the_task_as_asked_for(num_threads):
    together = threading.Barrier(num_threads)
    names = set()

    def task() -> None:
        together.wait(20)  # breaks, which is an error, where fewer come
        names.add(threading.get_ident())

    run_on_threads(task, num_threads)
    assert len(names) == num_threads


def test_the_caller_waits_for_helpers_that_have_begun():
    began, log = threading.Event(), []

    def task() -> None:
        if threading.current_thread() is threading.main_thread():
            began.wait(20)
            return
        began.set()
        time.sleep(0.05)
        log.append("helper done")

    run_on_threads(task, 2)
    assert log == ["helper done"]


@pytest.mark.parametrize("in_helper", [True, False])
def test_an_error_reaches_the_caller(in_helper):
    began = threading.Event()

    def task() -> None:
        is_helper = threading.current_thread() is not threading.main_thread()
        if is_helper:
            began.set()
        else:
            began.wait(20)
        if is_helper == in_helper:
            raise MemoryError("no scratch")

    with pytest.raises(MemoryError, match="no scratch"):
        run_on_threads(task, 2)
    run_on_threads(lambda: None, 2)


def test_the_task_is_let_go_of():
    class Task:
        def __call__(self) -> None:
            time.sleep(0.01)

    task = Task()
    alive = weakref.ref(task)
    run_on_threads(task, 3)
    del task
    for _ in range(100):
        gc.collect()
        if alive() is None:
            break
        time.sleep(0.01)
    assert alive() is None
