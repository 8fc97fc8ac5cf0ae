"""Tests of what screens.py takes for the same screen: times, widths and the ends of IDs may differ, words and their order may not."""

import datetime
import pathlib
import unittest

import screens

LIST = """\
$ belfry run list
RUN                               STATE      NOMINAL  STARTED  TOOK  ATTEMPT  WHY
clean-up~0mwqs9d00~4r8sa7l42tl00  succeeded  1s ago   1s ago   2ms   1
mail~0mwqs9d01~4r8sa7l42tl01      dead       2s ago   2s ago   2ms   2        attempts spent: exit: exit code 1: …
"""

ENDED = """\
19:33:09  attempt 1 runs on host-1
19:33:10  dead after 2 attempts in 23ms: attempts spent
state      dead
ended      2026-11-21 19:33:09 UTC (1s ago)
took       19ms
attempt 1  2026-11-21 19:33:09 UTC (now), failed after 3ms: exit: exit code 1: connection refused
"""


class Compared(unittest.TestCase):
    def same(self, one, other):
        self.assertNotEqual(one, other, "the test changes nothing")
        self.assertEqual(screens.compared(one), screens.compared(other))

    def different(self, one, other):
        self.assertNotEqual(one, other, "the test changes nothing")
        self.assertNotEqual(screens.compared(one), screens.compared(other))

    def test_times_and_widths_may_differ(self):
        self.same(LIST, LIST.replace("1s ago   1s ago   2ms ", "1m3s ago  1m2s ago  2.4s"))
        self.same(LIST, LIST.replace("2s ago   2s ago   2ms ", "now       now       800µs"))
        self.same(ENDED, ENDED.replace("2026-11-21 19:33:09", "2026-12-01 00:00:00"))
        self.same(ENDED, ENDED.replace("(1s ago)", "(now)").replace("(now)", "(2s ago)").replace("19ms", "2s"))
        self.same("next in 17h\n", "next in 2h16m\n")

    def test_ends_of_ids_may_differ(self):
        self.same(LIST, LIST.replace("~0mwqs9d01~4r8sa7l42tl01", "~0zzzzzzzz~zzzzzzzzzzzzz"))

    def test_what_a_wait_tells_may_differ(self):
        self.same(ENDED, ENDED.replace("19:33:10  dead after 2 attempts in 23ms: attempts spent\n", ""))

    def test_where_ages_leave_no_room_the_end_of_a_line_may_be_cut(self):
        self.same(LIST, LIST.replace("exit: exit code 1: …", "exit: exit co…"))

    def test_colours_may_differ(self):
        self.same(LIST, LIST.replace("dead", "\x1b[31mdead\x1b[0m"))

    def test_words_may_not(self):
        self.different(LIST, LIST.replace("dead", "failed"))
        self.different(LIST, LIST.replace("mail~", "letter~"))
        self.different(LIST, LIST.replace("ATTEMPT", "TRY"))
        self.different(ENDED, ENDED.replace("exit code 1", "exit code 2"))
        self.different(ENDED, ENDED.replace("attempt 1 ", "attempt 2 "))

    def test_nor_lines_and_their_order(self):
        lines = LIST.splitlines(keepends=True)
        self.different(LIST, "".join(lines[:-1]))
        self.different(LIST, "".join(lines[:2] + lines[:1:-1]))
        self.different(ENDED, ENDED.replace("took       19ms\n", ""))


class AsOfOneDay(unittest.TestCase):
    def test_dates_and_ids_are_those_of_one_day(self):
        began = datetime.date(2027, 3, 1)
        text = "mail~0abcdefgh~0123456789abc dead 2027-03-01 10:00:00, again 2027-03-02 10:00:00\nmail~0abcdefgh~0123456789abc runs on laptop\n"
        self.assertEqual(screens.as_of_one_day(text, began),
                         "mail~0mwqs9d00~4r8sa7l42tl00 dead 2026-11-21 10:00:00, again 2026-11-22 10:00:00\nmail~0mwqs9d00~4r8sa7l42tl00 runs on host-1\n")

    def test_screens_that_are_kept_compare_with_themselves(self):
        kept = sorted(pathlib.Path(screens.SCREENS).glob("*.txt"))
        self.assertEqual([p.stem for p in kept], sorted(screens.SHOWN))
        for path in kept:
            text = path.read_text()
            self.assertGreater(len(screens.compared(text).split()), 10, path)


if __name__ == "__main__":
    unittest.main()
