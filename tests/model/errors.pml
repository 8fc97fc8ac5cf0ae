/* Each number of PLANTED takes one rule out of protocol.pml: `PLANTED=13 ./pan`. 0 is the protocol as it is. */
hidden byte planted;
#define nointent  (planted == 1) /* the horizon is claimed up to, and not published */
#define nomono    (planted == 2) /* the horizon may fall */
#define lateX     (planted == 3) /* the clock is read again after the timers */
#define sendfirst (planted == 4) /* claim and send before the successor stands */
#define noto      (planted == 5) /* a timer does not say for how many fires it stands */
#define walllag   (planted == 6) /* a sweep goes by the clock alone, and skips what it is late for */
#define nopast    (planted == 7) /* timers of past generations are dropped */
#define onlylast  (planted == 8) /* an edit fences the generation before it, and no older one */
#define noreread  (planted == 9) /* an edit does not read the job again after X */
#define noD       (planted == 10)/* an edit writes however old its instant is */
#define geneq     (planted == 11)/* a sweep takes another generation's run for its own */
#define split     (planted == 12)/* the job and its first timer are two writes */
#define nofence   (planted == 13)/* an edit leaves no fences */
#define noover    (planted == 14)/* a claim does not go over a claim of a lower generation */
#define noversion (planted == 15)/* a start takes whatever claim or fence it finds */
#define winLA     (planted == 16)/* an edit looks a look-ahead far, not up to X */
#define movefirst (planted == 17)/* the cursors move before the sends */
#define nocheck   (planted == 18)/* no check timers */
#define nostretch (planted == 19)/* an edit that was overtaken settles the newer one only */
#define nocut     (planted == 20)/* an edit leaves older generations' ends where a clock ahead has put them */
