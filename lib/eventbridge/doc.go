// Package eventbridge reads schedules of Amazon EventBridge Scheduler as jobs, from what "aws scheduler get-schedule" prints:
// one object, several one after the other, or an array of them. docs/migrate-eventbridge.md says for people what becomes of what.
//
// A schedule calls a service of AWS. Belfry does so by its aws target, where it has one for that service, or calls an address instead
// (Config.URL).
//
// Nothing is dropped in silence: each schedule gives a job or a note, and each of its fields is kept or noted. An expression
// is translated only where Belfry fires at exactly the same times; else the schedule is lost, with the reason. (On the days when
// clocks change the two differ, as docs/schedule.md says: EventBridge skips a time of day that there is not.)
//
// The fields: https://docs.aws.amazon.com/scheduler/latest/APIReference/API_GetSchedule.html. The expressions:
// https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html.
package eventbridge
