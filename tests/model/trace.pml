/* In place of bounds.pml: what is done next is told by traces of the real code, from the file TRACES. A line is a step: the true time, who
   took it (the number of its process), what it was (its place in mtype), and two of its figures; "0 0 0 0 0" ends a trace. A step that the
   model cannot take there, with these figures, ends the way. How far each trace went is told as "at TRACE STEP". */
#define N 5
#define SET short
hidden byte LA = 2, LAG = 200, D = 15, SKEW = 1, last = 5, T, late, ticks = 12, ahead, edits = 2, wrong, far, repeats, passes;
short which, at;                                /* which trace, and how far in it */
short who, what, fig1, fig2;                    /* its next step */
c_code {
	static int steps[200000][5], begins[2000], furthest[2000], traces;
	static void load(void) {
		FILE *f = fopen(getenv("TRACES"), "r"); int n = 0, fresh = 1;
		while (f && n < 199999 && traces < 1999 && fscanf(f, "%d %d %d %d %d", steps[n], steps[n]+1, steps[n]+2, steps[n]+3, steps[n]+4) == 5) {
			if (fresh) { furthest[traces] = -1; begins[traces++] = n; }
			fresh = steps[n++][2] == 0;
		}
	}
	static void tell(void) {
		int *s = steps[begins[now.which] + now.at];
		if (s[2]) { now.now = s[0]; }
		now.who = s[1]; now.what = s[2]; now.fig1 = s[3]; now.fig2 = s[4];
		if (now.at > furthest[now.which]) { furthest[now.which] = now.at; printf("at %d %d\n", now.which, now.at); }
	}
}
#define bounds c_code { load(); }; do :: c_expr { now.which + 1 < traces } -> which++ :: break od; c_code { tell(); }
#define opening X = 0
#define alone provided (who == _pid)
#define clock(now) fig2
#define turn(h) true
#define say(kind, a, b) if :: what == kind && fig1 == (a) && fig2 == (b) -> at++; c_code { tell(); } :: else -> who = 0 fi
#define told(kind, set) (what == kind && (fig1 & (set)) == fig1 -> fig1 : lowest(set))
#define one(kind, set) told(kind, set)
#define some(kind, set) told(kind, set)
