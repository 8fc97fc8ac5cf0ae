/* How much is explored, by the environment: a process that is not wanted never takes a step. What protocol.pml leaves open is here the
   lowest of a set, or all of it. */
#define N 5                                     /* instants */
#define SET short
hidden byte LA = 2, LAG = 3, D = 1, SKEW = 1;   /* look-ahead, lag of the sweep, how old an edit's instant may be, hosts' clocks apart */
hidden byte last = 3;                           /* the last fire */
hidden byte T = 1, late;                        /* time goes to T while all are at work, and may then jump to late */
hidden byte ticks = 1, ahead, edits = 1, wrong, far = 4, repeats, passes = 1; /* wrong: edits whose clock is far ahead */
c_code {
	static void bound(const char *name, unsigned char *v) { if (getenv(name)) { *v = atoi(getenv(name)); } }
}
#define bounds c_code { \
	bound("PLANTED", &planted); bound("LA", &LA); bound("LAG", &LAG); bound("LAST", &last); bound("T", &T); bound("LATE", &late); \
	bound("TICKS", &ticks); bound("AHEAD", &ahead); bound("EDITS", &edits); bound("WRONG", &wrong); bound("REPEATS", &repeats); bound("PASSES", &passes); }
#define opening X = LA
#define alone
#define clock(now) (now)
#define turn(h) !over
#define say(kind, a, b) printf("%e by %d: %d %d\n", kind, h, a, b)
#define one(kind, set) lowest(set)
#define some(kind, set) (set)
