// Package rescue reads what is left of damaged files of Pebble. ReadTable reads a table block by block, with its index
// or, if that is lost, from the beginning of the file up to the first damaged block. Parts puts the tables and logs of
// a folder together whose manifest is lost. FS puts intact files in the place of damaged ones, so that Pebble opens the
// folder. Nothing in the folder is changed.
package rescue
