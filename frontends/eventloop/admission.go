package eventloop

import (
	"time"

	"broker/access"
	"broker/frontends"
)

// admission is the admission of the client. Sessions that do not know it admit every client.
func (c *conn) admission() frontends.Admission {
	if s, knows := c.session.(frontends.Admitter); knows {
		return s.Admission()
	}
	return frontends.Admission{Principal: access.Everyone}
}

// maxInput is the limit of the unread input, in bytes.
func (c *conn) maxInput() int {
	most := c.group.bounds.MaxInput
	if c.in.len() > frontends.MaxInputWithoutRights && c.admission().Rights != frontends.Admitted {
		return min(frontends.MaxInputWithoutRights, most)
	}
	return most
}

// expectLogin starts the time until the login, if the client must log in.
func (c *conn) expectLogin(now time.Time) {
	if c.admission().Rights == frontends.LoginDue {
		c.loginBy = now.Add(c.group.bounds.LoginTime())
		c.loop.loginDue[c] = struct{}{}
	}
}

// checkLogin is called periodically until the client has logged in.
func (c *conn) checkLogin(now time.Time) {
	defer c.recovered()
	switch {
	case c.phase != serving || c.closeRequested || c.admission().Rights != frontends.LoginDue:
		delete(c.loop.loginDue, c)
	case !now.Before(c.loginBy):
		delete(c.loop.loginDue, c)
		c.startedIdle = c.idle()
		c.dismiss("login_time", frontends.DismissLogin)
		c.afterSession()
	}
}

// dismiss tells a client why its connection is closed.
func (c *conn) dismiss(limit, text string) {
	c.group.dismissed.Add(1)
	c.logCutOff(limit, c.in.len())
	if s, knows := c.session.(frontends.Admitter); knows {
		s.Dismiss(text)
	}
	c.closeRequested = true
}
