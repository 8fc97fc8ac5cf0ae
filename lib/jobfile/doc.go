// Package jobfile is what people write down of jobs: files as "belfry job apply" reads them and "belfry export" writes them, and
// what is taken over from files of other schedulers. The command line and the pages of the console are both made of it, so a text means the same to both.
//
// Everything here is a function of its text: nothing is asked of a server, a host or an environment.
package jobfile
