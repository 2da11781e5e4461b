// Package plan checks lists of operations that are applied together or not at all. It knows which jobs, ids, unique
// keys and places in queues the operations before will take, so that no operation of the list can be refused once the
// first one is applied. The machine asks it while it checks a list. It knows neither the machine nor its clients.
package plan
