package sqs

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"

	"github.com/google/uuid"

	"broker/access"
	"broker/core"
	"broker/core/client"
)

// taskName is what a task handle contains: it is the base64 of its JSON, as in SQS.
type taskName struct {
	ID     string `json:"taskId"`
	Source string `json:"sourceArn"`
}

func (f *Frontend) newTaskHandle(source string) string {
	raw, err := json.Marshal(taskName{uuid.NewString(), f.arnOf(source)})
	if err != nil {
		panic(err) // texts only
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// sourceOf returns the queue from which the task with a handle moves messages.
func (f *Frontend) sourceOf(handle string) (source string, ok bool) {
	f.mu.RLock()
	i := slices.IndexFunc(f.tasks, func(t *moveTask) bool { return t.Handle == handle })
	if i >= 0 {
		source = f.tasks[i].Source
	}
	f.mu.RUnlock()
	if i >= 0 {
		return source, true
	}
	var name taskName
	raw, err := base64.StdEncoding.DecodeString(handle)
	if err != nil || json.Unmarshal(raw, &name) != nil || name.ID == "" || name.Source == "" {
		return "", false
	}
	return arnName(name.Source), true
}

// addTask stores a task and starts it, unless the queue has a running task or too many tasks are running, of all
// callers or of this one. It drops finished tasks.
func (f *Frontend) addTask(c *client.Client, t *moveTask) (commit core.Commit, err error) {
	f.changes.Lock()
	defer f.changes.Unlock()
	known := f.tasksOf(t.Source)
	if len(known) > 0 && known[0].running() {
		return 0, refuse(invalidParameter,
			"There is already a task running. Only one active task is allowed for a source queue arn at a given time.")
	}
	if err := f.running.Take(t.holder, 1); err != nil {
		return 0, refuse(overLimit, "Too many tasks are running: %v. Wait until one is done, or cancel one.", err)
	}
	defer func() {
		if err != nil {
			f.running.Return(t.holder, 1)
		}
	}()
	if err := f.dropTasks(c, f.surplusTasks(known)); err != nil {
		return 0, err
	}
	if commit, err = f.save(c, t); err != nil {
		return 0, err
	}
	f.mu.Lock()
	f.tasks = append(f.tasks, t)
	f.mu.Unlock()
	f.runTask(t)
	return commit, nil
}

// save writes the state of a task, unless it was dropped.
func (f *Frontend) save(c *client.Client, t *moveTask) (core.Commit, error) {
	if t.isDropped() {
		return 0, nil
	}
	t.mu.Lock()
	value, err := json.Marshal(t)
	t.mu.Unlock()
	if err != nil {
		return 0, err
	}
	r, err := c.Ask(&core.WriteDocuments{
		Tag: 1, Documents: []core.MetaEntry{{Name: taskDocs + t.Handle, Value: value}},
	})
	if err == nil && t.isDropped() { // dropTasks may have removed the document before it was written again
		return 0, f.removeTask(c, t)
	}
	return r.Commit, err
}

func (f *Frontend) removeTask(c *client.Client, t *moveTask) error {
	_, err := c.Ask(&core.WriteDocuments{Tag: 1, Documents: []core.MetaEntry{{Name: taskDocs + t.Handle}}})
	return err
}

func (t *moveTask) isDropped() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dropped
}

// surplusTasks returns the finished tasks that a new task displaces: of its queue, whose tasks are known, and of all
// queues the oldest of the caller with the most finished ones.
func (f *Frontend) surplusTasks(known []*moveTask) (surplus []*moveTask) {
	if len(known) >= maxTasks {
		surplus = slices.Clone(known[maxTasks-1:])
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	finished := make(map[string][]*moveTask) // oldest first
	for _, t := range f.tasks {
		if !t.running() && !slices.Contains(surplus, t) {
			finished[t.Who] = append(finished[t.Who], t)
		}
	}
	for len(f.tasks)-len(surplus) >= maxAllTasks {
		most := ""
		for who, tasks := range finished {
			if n := len(tasks) - len(finished[most]); n > 0 || n == 0 && who < most {
				most = who
			}
		}
		if len(finished[most]) == 0 {
			break
		}
		surplus, finished[most] = append(surplus, finished[most][0]), finished[most][1:]
	}
	return surplus
}

// dropTasks forgets tasks, and stops those that run. The caller holds changes.
func (f *Frontend) dropTasks(c *client.Client, tasks []*moveTask) error {
	for _, t := range tasks {
		t.mu.Lock()
		t.dropped = true
		if t.State == taskRunning {
			t.State = taskStopping
		}
		t.mu.Unlock()
		if err := f.removeTask(c, t); err != nil {
			return err
		}
		f.mu.Lock()
		f.tasks = slices.DeleteFunc(f.tasks, func(old *moveTask) bool { return old == t })
		f.mu.Unlock()
	}
	return nil
}

// stillMay reports whether the creator of a task may operate a queue now, because a reload may have removed the right.
func (f *Frontend) stillMay(t *moveTask, queue string) bool {
	if access.IsReserved(t.Who) { // without a principal of the settings
		return true
	}
	return f.guard.Control().Default(t.Who).May(access.Operate, f.coreName(queue))
}

// tasksOf returns the tasks of a queue, newest first.
func (f *Frontend) tasksOf(source string) (tasks []*moveTask) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, t := range slices.Backward(f.tasks) {
		if t.Source == source {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// loadTasks reads the stored tasks. It drops tasks of queues that no longer exist, and the oldest finished tasks if
// there are too many.
func (f *Frontend) loadTasks(c *client.Client) error {
	err := f.eachDocument(c, taskDocs, func(value []byte) error {
		t := &moveTask{}
		if err := json.Unmarshal(value, t); err != nil {
			return err
		}
		f.tasks = append(f.tasks, t)
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(f.tasks, func(a, b *moveTask) int { return cmp.Compare(a.StartedAt, b.StartedAt) })
	exists := make(map[string]bool)
	var gone []*moveTask
	for _, t := range f.tasks {
		if _, asked := exists[t.Source]; !asked {
			info, err := f.inspect(t.Source)
			exists[t.Source] = f.queues[t.Source] != nil || info != nil || err != nil
		}
		if !exists[t.Source] {
			gone = append(gone, t)
		}
	}
	if err := f.dropTasks(c, gone); err != nil {
		return err
	}
	return f.dropTasks(c, f.surplusTasks(nil))
}
