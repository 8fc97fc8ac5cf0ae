// Package mailtarget sends the mails of email targets: one conversation in SMTP an attempt, with the server that the operator names.
//
// What holds:
//
//   - Beyond loopback nothing is said before TLS with a certificate of that host, unless the server's URL says tls=none. A password never goes
//     without TLS but to loopback.
//   - A mail goes to all its recipients at once. Where the server puts one of them off, it goes to none, and a later attempt is for all. Where it refuses
//     some for good, the others get it, and the attempt fails for good and says who did not.
//   - A *target.Failure says that the mail was not taken, or not for everybody. Up to the end of the mail's text nothing is taken; from then on until the
//     server's answer nobody knows, and the error is no Failure.
//   - The Message-ID is the same on every attempt of a run, and of no other tenant's run.
//   - No line of a header or of a command holds anything but ASCII, and none is made of the payload alone: package target refuses addresses and subjects
//     that could begin another.
//
// Who may be mailed to is not decided here but by package target (Config.MailTo).
package mailtarget
