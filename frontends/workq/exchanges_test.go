package workq

import "broker/frontends/frontendtest"

// exchanges are those of the shared suite.
var exchanges = []frontendtest.Exchange{
	{Command: "add", Send: "add " + idOf(9) + " suite 2000 60000 1\r\nx\r\n"},
	{Command: "add", Send: "add " + idOf(1) + " suite 2000 60000 1\r\nx\r\n"},
	{Command: "schedule", Send: "schedule " + idOf(9) + " suite 2000 60000 2030-01-01T00:00:00Z 1\r\nx\r\n"},
	{Command: "run", Send: "run " + idOf(1) + " suite 2000 60000 1\r\nx\r\n"},
	{Command: "result", Send: "result " + idOf(1) + " 0\r\n"},
	{Command: "result", Before: finished, Send: "result " + idOf(1) + " 0\r\n"},
	{Command: "lease", Send: "lease suite 0\r\n"},
	{Command: "complete", Before: "lease suite 0\r\n", Send: "complete " + idOf(1) + " 1\r\nx\r\n"},
	{Command: "fail", Before: "lease suite 0\r\n", Send: "fail " + idOf(1) + " 1\r\nx\r\n"},
	{Command: "delete", Send: "delete " + idOf(1) + "\r\n"},
	{Command: "delete", Send: "delete " + idOf(9) + "\r\n"},
	{Command: "inspect", Send: "inspect\r\n"},
	{Command: "job", Send: "inspect job " + idOf(1) + "\r\n"},
	{Command: "job", Send: "inspect job " + idOf(9) + "\r\n"},
	{Command: "jobs", Send: "inspect jobs suite 0 10\r\n"},
	{Command: "scheduled-jobs", Send: "inspect scheduled-jobs suite 0 10\r\n"},
	{Command: "queue", Send: "inspect queue suite\r\n"},
	{Command: "queues", Send: "inspect queues 0 10\r\n"},
	{Command: "server", Send: "inspect server\r\n"},
}

// finished leases and completes the first job of the suite.
var finished = "lease suite 0\r\ncomplete " + idOf(1) + " 1\r\nx\r\n"
