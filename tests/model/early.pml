/* What a rule says of a step while its parents end, one by one in any order. The rules are the code's: the file RULES has what each says of every set of outcomes, with none to
   four parents open. docs/model.md reads it aloud. Outcomes are bits: 1 succeeded, 2 failed, 4 upstream failed, 8 skipped. */
hidden byte planted, verdict[960];
c_code {
	static void rules(void) {
		FILE *f = fopen(getenv("RULES") ? getenv("RULES") : "", "r"); int n = 0, v;
		while (f && n < 960 && fscanf(f, "%d", &v) == 1) { verdict[n++] = v; }
		if (n < 960) { printf("RULES names no table of the rules\n"); exit(1); }
		if (getenv("PLANTED")) { planted = atoi(getenv("PLANTED")); }
	}
}
/* Each number of PLANTED takes one rule out; 0 is as it is. */
#define hasty      (planted == 1)  /* a rule decides by those that have ended */
#define hopeful    (planted == 2)  /* a step runs as soon as one way in which the open ones may end has it run */
#define doneearly  (planted == 3)  /* all_done decides as the others, where every way gives the same */
#define lastonly   (planted == 4)  /* a rule decides by whoever has ended last */
#define sluggish   (planted == 5)  /* nothing is decided by the first that ends */

#define WAIT 0
#define RUNS 1
#define ALLDONE 2                               /* places in the list of rules */
#define ONESUCCESS 5
#define ONEFAILED 6
#define ONEDONE 7
#define ALWAYS 11

byte rule, parents, open, seen, said, ended;
hidden byte one, now_says, i;
hidden byte W2_decides_in_the_end, W2_takes_nothing_back, W2_early_ones_alone_run_early, W2_by_one_end_alone;

#define says(s, n) verdict[(rule * 16 + (s)) * 5 + (n)]

inline ask() {
  now_says = says(seen, open);
  if
  :: hasty && seen -> now_says = says(seen, 0)
  :: hopeful && open -> if :: says(seen | 1, open - 1) == RUNS || says(seen | 2, open - 1) == RUNS -> now_says = RUNS :: else fi
  :: doneearly && rule == ALLDONE -> now_says = RUNS
  :: lastonly && one -> now_says = says(one, open)
  :: sluggish && rule != ALWAYS && open && open + 1 == parents -> now_says = WAIT
  :: else
  fi;
  W2_decides_in_the_end = (open > 0 || now_says != WAIT); assert(W2_decides_in_the_end);
  W2_takes_nothing_back = (said == WAIT || said == now_says); assert(W2_takes_nothing_back);
  W2_early_ones_alone_run_early = (open == 0 || now_says != RUNS || rule == ALWAYS || rule == ONESUCCESS || rule == ONEFAILED || rule == ONEDONE); assert(W2_early_ones_alone_run_early);
  /* What is decided early follows from the end that has just come alone: so whoever has ended need read nobody else for it. */
  W2_by_one_end_alone = (open == 0 || now_says == WAIT || said != WAIT || !one || now_says == says(one, parents - 1)); assert(W2_by_one_end_alone);
  said = now_says; now_says = 0
}

init {
  c_code { rules(); };
  rule = 0; do :: rule < 11 -> rule++ :: break od;
  parents = 1; do :: parents < 4 -> parents++ :: break od;
  skip; d_step { open = parents; one = 0; ask() }
  do
  :: open ->
     if :: ended = 1 :: ended = 2 :: ended = 4 :: ended = 8 fi;
     d_step { one = ended; seen = seen | one; open--; ended = 0; ask(); one = 0 }
  :: else -> break
  od
}
