package hub_test

const childVar = "CAIRN_TEST_HUB"

func serveAsChild(string) {}
