package console

import (
	"encoding/json"
	"net/url"

	"broker/core/schema"
)

// policyView is a policy in the form of a queue's page, and as facts for those who may not change it.
type policyView struct {
	Fields          []schema.Field
	Facts           []setFact
	Any, FromConfig bool
}

// setFact is a value with its label.
type setFact struct{ Label, Text string }

// viewPolicy returns the form of a policy; p may be nil.
func viewPolicy(p *schema.Policy) policyView {
	if p == nil {
		return policyView{Fields: schema.Fields(schema.PolicyRows, nil)}
	}
	members := schema.Members(p)
	return policyView{
		Any: true, FromConfig: p.FromConfig,
		Fields: schema.Fields(schema.PolicyRows, members), Facts: facts(schema.PolicyRows, members),
	}
}

// facts are the settings that are set.
func facts(rows []schema.Row, members map[string]json.RawMessage) (all []setFact) {
	for i := range rows {
		if value := members[rows[i].Name]; value != nil && string(value) != "null" {
			all = append(all, setFact{rows[i].Label, rows[i].Text(value)})
		}
	}
	return all
}

// policyForm reads a policy. Empty fields remove values.
func policyForm(form url.Values) (json.RawMessage, error) {
	members, err := schema.ReadFields(schema.PolicyRows, form.Get)
	if err != nil {
		return nil, fieldError(err)
	}
	return json.Marshal(members)
}

// fieldError is an error of package schema as one of a form.
func fieldError(err error) error {
	field, detail, ok := schema.FieldOf(err)
	if !ok {
		return err
	}
	return invalid(field, detail)
}

// typedFields replaces the values of fields with the submitted ones.
func typedFields(fields []schema.Field, form url.Values) {
	for i := range fields {
		fields[i].Value = form.Get(fields[i].Name)
	}
}
