package mcp

// Tokens estimates what the definitions of tools cost a model's context: a
// quarter of their bytes in tools/list, rounded up (design §7).
func Tokens(tools []Tool) (int, error) {
	bytes := 0
	for _, t := range tools {
		d, err := t.definition()
		if err != nil {
			return 0, err
		}
		data, err := encode(d)
		if err != nil {
			return 0, err
		}
		bytes += len(data)
	}
	return (bytes + 3) / 4, nil
}
