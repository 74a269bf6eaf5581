"""Whether a draft with one thing changed follows the target clearly better than as it is.

Both are led through the same text, so every place is compared with itself. A change is clearly better where, at some
place of the draft, all of this holds:

- sure: among the places of the text where only one of the two is right, so many speak for the change that chance gives
  it once in `RISK` (sign test, one-sided, divided by the number of comparisons that are made of a draft), and the
  log-probability of the target's token rises too, by at least three standard errors;
- worth it: at least `GAIN` of the places more are right, and the draft as a whole is not accepted shorter;
- good by itself: with the change, surely more than the 12 % of the alarm (`planning.alarm`), and more than one gets who
  says the text's commonest token always, or repeats the last one.

So a weak draft and one that was never trained raise nothing: no change makes them good.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from specctl.planning.alarm import BOUND, RISK, lower_bound
from specctl.runtime.probing.follow import Marks
from specctl.runtime.probing.lesson import Lesson

GAIN = 0.05
ERRORS = 3.0


@dataclass(frozen=True)
class Gain:
    """At place ``place`` of a draft (0 is the first), ``before`` and ``after`` of ``places`` tokens are right."""

    place: int
    places: int
    before: float
    after: float


def gain(base: Marks, changed: Marks, trivial: float, comparisons: int) -> Gain | None:
    """The place where ``changed`` is clearly better than ``base``, the one of most gain; None where it is not.

    ``trivial``: the share that one reaches without a draft; ``comparisons``: how many are made of this draft in all.
    """
    if changed.length < base.length:
        return None
    found = [
        Gain(place, base.places, base.shares[place], changed.shares[place])
        for place in range(base.right.shape[1])
        if _sure(base, changed, place, RISK / comparisons) and _good(changed, place, trivial)
    ]
    worth = [each for each in found if each.after - each.before >= GAIN]
    return max(worth, key=lambda each: each.after - each.before, default=None)


def _sure(base: Marks, changed: Marks, place: int, risk: float) -> bool:
    ours, theirs = changed.right[:, place], base.right[:, place]
    won, lost = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    return sign_test(won, lost) <= risk and _rises(changed.logs[:, place] - base.logs[:, place])


def sign_test(won: int, lost: int) -> float:
    """The chance of at least ``won`` heads in ``won + lost`` throws of a coin."""
    throws = won + lost
    return float(sum(math.comb(throws, heads) for heads in range(won, throws + 1)) / 2**throws)


def _rises(differences: Tensor) -> bool:
    error = float(differences.double().std()) / math.sqrt(len(differences))
    return float(differences.double().mean()) > ERRORS * error


def _good(changed: Marks, place: int, trivial: float) -> bool:
    right = int(changed.right[:, place].sum())
    return lower_bound(changed.places, right) > max(BOUND, trivial)


def hopeless(base: Marks, changed: Marks) -> bool:
    """Whether nothing speaks for the change in the part of the text that it has been tried on: no more tokens are
    right, or they are no likelier.
    """
    same = slice(changed.places)
    more = int(changed.right.sum()) > int(base.right[same].sum())
    return not (more and float(changed.logs.sum()) > float(base.logs[same].sum()))


def trivial_share(lesson: Lesson) -> float:
    """What one gets right at the scored places without a draft: by the commonest token, or by the one before."""
    says, before = [], []
    for number, text in enumerate(lesson.texts):
        said = lesson.says(number)
        says.append(said)
        before.append(torch.tensor(text.tokens[text.start :], device=said.device))
    told, newest = torch.cat(says), torch.cat(before)
    commonest = int(told.bincount().max())
    return max(commonest, int((told == newest).sum())) / len(told)
