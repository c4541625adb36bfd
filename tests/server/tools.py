# SPDX-License-Identifier: MIT
"""Tools for requests, and chat templates with and without support for them."""

TAGGED = """{% if tools %}Tools:{% for t in tools %} {{ t | tojson }}{% endfor %}
Call them as <tool_call>{"name": ..., "arguments": ...}</tool_call>.
{% endif %}{% for m in messages %}{{ m.role }}: {{ m.content }}
{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>
{% endfor %}{% endfor %}assistant: """
PARAMETERS = """{% if tools %}Tools:{% for t in tools %} {{ t | tojson }}{% endfor %}
Call them as
<tool_call>
<function=example>
<parameter=example_parameter>
value
</parameter>
</function>
</tool_call>
{% endif %}{% for m in messages %}{{ m.role }}: {{ m.content }}
{% for c in m.tool_calls or [] %}<tool_call>
<function={{ c.function.name }}>
{% for name, value in c.function.arguments | items %}<parameter={{ name }}>
{{ value | tojson if value is mapping or (value is sequence and value is not string) else value }}
</parameter>
{% endfor %}</function>
</tool_call>
{% endfor %}{% endfor %}assistant: """
BARE = """{% if tools %}{% for t in tools %}{{ t | tojson }}{% endfor %}
Respond in the format {"name": function name, "parameters": dictionary of argument name}.
{% endif %}{% for m in messages %}{{ m.role }}: {{ m.content }}
{% endfor %}assistant: """
# A short template that supports tools, with which the demo model still answers in words.
CALLS = """{% for m in messages %}{{ m.role }}: {{ m.content }}
{% endfor %}{% if tools %}(<tool_call>) {% endif %}assistant: """
DEAF = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "


def tool(name, **properties):
    return {"type": "function", "function": {
        "name": name, "description": "Tells <tool_call> & more.",
        "parameters": {"type": "object", "properties": properties, "required": list(properties),
                       "additionalProperties": False}}}


TOOLS = [tool("weather", city={"enum": ["Rome", "Oslo"]}, days={"enum": [1, 2]}), tool("stop")]
