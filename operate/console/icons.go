package console

import (
	"fmt"
	"html/template"
)

// icons are SVG paths, drawn with lines in a square of 24.
var icons = map[string]string{
	"overview":   "M4 4h6v7H4zM14 4h6v4h-6zM14 12h6v8h-6zM4 15h6v5H4z",
	"queues":     "M4 6h16M4 12h16M4 18h10",
	"jobs":       "M9 6h11M9 12h11M9 18h11M4 6h.01M4 12h.01M4 18h.01",
	"running":    "M7 4.5v15l12-7.5z",
	"scheduled":  "M12 7v5l3 2M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z",
	"retrying":   "M20 11a8 8 0 1 0-2.3 6.2M20 5v6h-6",
	"finished":   "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM8 12l3 3 5-6",
	"dead":       "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM9 9l6 6M15 9l-6 6",
	"submit":     "M12 5v14M5 12h14",
	"workers":    "M9 4.5a3.2 3.2 0 1 0 0 6.4 3.2 3.2 0 0 0 0-6.4zM3 20c0-3.5 2.7-6 6-6s6 2.5 6 6M16 4.8a3.2 3.2 0 0 1 0 5.8M18 14.5c1.9.9 3 2.9 3 5.5",
	"schedules":  "M4 6h16v14H4zM4 10h16M8 3v4M16 3v4",
	"batches":    "M12 3l9 5-9 5-9-5zM3 12.5l9 5 9-5M3 16.5l9 5 9-5",
	"limits":     "M4 18a9 9 0 1 1 16 0M12 15l4-5",
	"storage":    "M4 6c0-1.7 3.6-3 8-3s8 1.3 8 3-3.6 3-8 3-8-1.3-8-3zM4 6v12c0 1.7 3.6 3 8 3s8-1.3 8-3V6M4 12c0 1.7 3.6 3 8 3s8-1.3 8-3",
	"cluster":    "M12 3a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5zM5 16a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5zM19 16a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5zM10.8 7.8l-4.6 8.4M13.2 7.8l4.6 8.4M7.5 18.5h9",
	"operations": "M4 7h10M18 7h2M4 17h2M10 17h10M16 5a2 2 0 1 0 0 4 2 2 0 0 0 0-4zM8 15a2 2 0 1 0 0 4 2 2 0 0 0 0-4z",
	"audit":      "M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6",
	"settings":   "M12 8.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM12 3v2.5M12 18.5V21M3 12h2.5M18.5 12H21M5.6 5.6l1.8 1.8M16.6 16.6l1.8 1.8M18.4 5.6l-1.8 1.8M7.4 16.6l-1.8 1.8",
	"api":        "M8 4C5 4 7 11 4 12c3 1 1 8 4 8M16 4c3 0 1 7 4 8-3 1-1 8-4 8",
	"search":     "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l4.5 4.5",
	"menu":       "M4 7h16M4 12h16M4 17h16",
	"alert":      "M12 3.5L2.5 20h19zM12 10v4.5M12 17.3v.01",
	"check":      "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM8 12.3l2.8 2.7L16 9.5",
	"columns":    "M4 5h16v14H4zM9.5 5v14M15 5v14",
	"save":       "M6 4h12v17l-6-4.5L6 21z",
	"copy":       "M9 9h11v11H9zM5 15H4V4h11v1",
	"filter":     "M4 6h16M7 12h10M10 18h4",
	"pause":      "M8 5v14M16 5v14",
	"theme":      "M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18",
	"help":       "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM9.5 9.5a2.5 2.5 0 1 1 3.6 2.2c-.8.4-1.1.9-1.1 1.8M12 16.8v.01",
	"logout":     "M14 4H5v16h9M10 12h11M17.5 8.5L21 12l-3.5 3.5",
	"download":   "M12 4v11M7.5 10.5L12 15l4.5-4.5M4 20h16",
}

// icon returns an icon in the size of the text. Screen readers skip it, because a label stands beside it.
func icon(name string) (template.HTML, error) {
	path, ok := icons[name]
	if !ok {
		return "", fmt.Errorf("no icon %s", name)
	}
	return template.HTML(`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d="` + path + `"/></svg>`), nil
}
