"""pandas: from a DataFrame to picks, a report, and the next round.

    python examples/with_pandas.py [FOLDER]

Picks twelve of 442 people in two rounds; writes the report and the first selection to the folder.
"""

import sys
from pathlib import Path

from sklearn.datasets import load_diabetes

import evgp

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "with-pandas")
folder.mkdir(parents=True, exist_ok=True)

people = load_diabetes(as_frame=True, scaled=False).frame
people.index = [f"person-{number:03d}" for number in range(len(people))]
answers = people.pop("target")  # what the clinic would measure, one person at a time
people["progression"] = float("nan")
measured = people.columns.drop("progression")

# The first round: six people, best first.
first = evgp.pick(people[measured], k=6)
print(first)
table = first.to_frame(people)
print(table[["rank", "gain", "variance_left", "age", "bmi"]].round(3).to_string())
first.report(folder / "first.html", pool=people[measured])
first.save(folder / "first.json")

# The answers arrive; the table has the index of the frame.
people.loc[table.index, "progression"] = answers[table.index]

# The second round, perhaps days later: the first picks are labelled now.
first = evgp.Selection.load(folder / "first.json")
second = evgp.pick(people[measured], k=6, labelled=first)
assert not set(first) & set(second)
chosen = people.index[second]
people.loc[chosen, "progression"] = answers[chosen]
print(f"variance {second.start_variance:.3f} -> {second.variance_left[-1]:.3f}")
print(f"{people['progression'].notna().sum()} of {len(people)} people have an answer")

# How many labels does it take to halve the variance? At least this many.
needed = first.certificate.needed[0.5]
print(f"halving the variance takes at least {needed.at_least} labels")
