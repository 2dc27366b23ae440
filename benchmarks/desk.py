"""How the desk's pages bear a million intents: `make bench`.

Each page is opened on databases that hold 1,000 and 1,000,000 settled intents (and the same 300 open cases), SQLite
and PostgreSQL. It should take as many queries, and at most half as long again.
Only ratios within one run mean something.

    python -m benchmarks.desk [--large N] [--database sqlite|postgresql]
"""

import sys

from benchmarks import running

SMALL, LARGE, MOST = 1_000, 1_000_000, 1.5
# What stays below this is noise, whatever its ratio.
LEAST_MS = 2.0

Found = dict[str, dict[str, float]]


def _compare(database: str, large: int) -> int:
    small, big = (_run(database, number) for number in (SMALL, large))
    print(f"\n{database}: {SMALL:,} and {large:,} intents\n")
    print(f"{'page':22}{'ms':>9}{'ms':>9}{'ratio':>8}{'queries':>9}{'queries':>9}")
    slow = []
    for page, few in small.items():
        many = big[page]
        ratio = many["ms"] / few["ms"]
        print(f"{page:22}{few['ms']:>9}{many['ms']:>9}{ratio:>8.2f}{few['queries']:>9.0f}{many['queries']:>9.0f}")
        if many["queries"] != few["queries"] or (ratio > MOST and many["ms"] - few["ms"] > LEAST_MS):
            slow.append(page)
    print(f"\n{'Too slow, or more queries: ' + ', '.join(slow) if slow else 'Flat.'}")
    return 1 if slow else 0


def _run(database: str, number: int) -> Found:
    with running.fresh(database) as place:
        found: Found = place.run("benchmarks.desk_pages", number)
    return found


if __name__ == "__main__":
    sys.exit(running.main(_compare, __doc__, large=LARGE))
