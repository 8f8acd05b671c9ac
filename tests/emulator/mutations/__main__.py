"""Runs the mutants of every subject, or of those whose names contain a word, and says what survives."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from emulator.mutations.explained import explanation, too_many
from emulator.mutations.launches import all_subjects, recorded
from emulator.mutations.run import SURVIVES, Trial


def main(words: Sequence[str], num_seeds: int, verbose: bool) -> int:
    begin, count, survivors = time.time(), 0, []
    for subject, target in all_subjects():
        name = f"{subject} {target}"
        if words and not any(word in name for word in words):
            continue
        for trial in map(Trial, recorded(subject, target)):
            for mutant in trial.mutants():
                outcome = trial.outcome(mutant, range(num_seeds))
                count += 1
                if outcome == SURVIVES:
                    survivors.append((name, mutant))
                if verbose or outcome == SURVIVES:
                    why = explanation(name, mutant) if outcome == SURVIVES else None
                    print(f"  {mutant.description}: {outcome}{f', {why.why}' if why else ''}", flush=True)
        print(f"{name}: {count} mutants, {len(survivors)} survived so far, {time.time() - begin:.0f} s", flush=True)
    unexplained = too_many(survivors)
    for one in unexplained:
        print(f"NOT EXPLAINED: {one}")
    return int(bool(unexplained))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m emulator.mutations")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    raise SystemExit(main(given.words, given.seeds, given.verbose))
