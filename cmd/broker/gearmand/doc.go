// Package gearmand implements gearmand's command line. It reads the options and the options file like gearmand and
// translates them to the broker's settings. It also implements gearmand's process handling: the background process, the
// pid file, the log file, and the change of the user. It does not serve clients; the caller of Main does.
package gearmand
