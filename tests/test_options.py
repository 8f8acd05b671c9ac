"""What an option may be is looked at where the options are made, whichever has been added since."""

from __future__ import annotations

from dataclasses import fields

import pytest

from deuteron.errors import UsageError
from deuteron.options import CPUOptions, CUDAOptions

FLAGS = [(made, one.name) for made in (CPUOptions, CUDAOptions) for one in fields(made) if type(one.default) is bool]


@pytest.mark.parametrize(("made", "flag"), FLAGS, ids=lambda value: getattr(value, "__name__", value))
def test_every_flag_is_true_or_false(made, flag):
    assert getattr(made(**{flag: True}), flag) is True
    with pytest.raises(UsageError, match=f"{flag} is True or False, got 'yes'"):
        made(**{flag: "yes"})
