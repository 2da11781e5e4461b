// Package gearmand understands gearmand's command line: it reads the options and the file of options as gearmand does, translates
// them to the broker's settings, and does what gearmand does around a server: the background process, the file with the process
// id, the log file, and the change of the user. It serves nobody: the program that calls Main serves.
package gearmand
