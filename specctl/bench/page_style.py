"""The style sheet of the HTML report: light, dark, narrow and printed."""

from __future__ import annotations

# Colours that stay apart for most kinds of colour blindness (after Okabe and Ito); the first is the baseline's grey.
LIGHT = ("#6b7280", "#0072b2", "#d55e00", "#009e73", "#a0458b", "#b8860b", "#0f7f8f", "#8b3a3a", "#3f51b5", "#5b7f00")
DARK = ("#9ca3af", "#56b4e9", "#f0883e", "#3ddc97", "#d98cc4", "#e6c34a", "#5fd3e0", "#e08a8a", "#9fa8ff", "#b5d85a")

_SHEET = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1c1f24;--soft:#5c6470;--line:#dfe3e8;--card:#f6f7f9;
--keep:#0a7d4b;--drop:#b3261e;--noise:#6b5b00;LIGHT}
@media(prefers-color-scheme:dark){:root{--bg:#14171c;--fg:#e7eaef;--soft:#9aa3b0;--line:#2c323b;--card:#1d2129;
--keep:#4fd39a;--drop:#ff8a80;--noise:#e6cf6b;DARK}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1120px;margin:0 auto;padding:24px 16px 64px}
h1{font-size:1.05rem;color:var(--soft);font-weight:600;margin:0 0 8px}
h2{font-size:1.15rem;margin:40px 0 8px}
.verdict{font-size:1.3rem;line-height:1.35;margin:0 0 12px;font-weight:600}
.soft{color:var(--soft);margin:2px 0;font-size:.92rem}
.levels{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:10px;margin:20px 0}
.level{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 12px}
.level b{display:block;font-size:1.05rem}
.level .keep{color:var(--keep)}.level .drop{color:var(--drop)}.level .noise{color:var(--noise)}
.legend{display:flex;flex-wrap:wrap;gap:6px 16px;margin:10px 0;font-size:.92rem}
.legend i{display:inline-block;width:12px;height:12px;border-radius:3px;background:var(--c);margin-right:6px;
vertical-align:-1px}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,440px),1fr));gap:18px}
figure{margin:0;border:1px solid var(--line);border-radius:8px;padding:10px 8px 4px;break-inside:avoid}
figcaption{font-weight:600;font-size:.95rem;padding:0 6px 4px}
figcaption span{display:block;font-weight:400;color:var(--soft);font-size:.85rem}
svg{display:block;width:100%;height:auto}
svg text{font:11.5px system-ui,sans-serif;fill:var(--fg)}
.grid{stroke:var(--line)}.mark{stroke:var(--soft);stroke-dasharray:4 3}
.line{fill:none;stroke:var(--c);stroke-width:2}.bar{stroke:var(--c);fill:none;stroke-width:1.2}
.dot,.fill{fill:var(--c)}
.table{overflow-x:auto;border:1px solid var(--line);border-radius:8px;margin:10px 0}
table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:6px 10px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{text-align:left;position:sticky;left:0;background:var(--bg)}
tr:last-child td{border-bottom:0}
tr.green td{color:var(--keep)}tr.red td{color:var(--drop)}
pre{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 12px;overflow-x:auto;
font-size:.85rem;white-space:pre-wrap;overflow-wrap:anywhere}
ul{padding-left:1.2em}li{margin:3px 0}
@media print{:root{--bg:#fff;--fg:#000;--soft:#444;--line:#bbb;--card:#fff;LIGHT}main{max-width:none;padding:0}
.plots{grid-template-columns:1fr 1fr}.table{overflow:visible}table{font-size:.7rem}th,td{padding:3px 5px}
h2{break-after:avoid}body{font-size:11pt}}
"""


def sheet() -> str:
    """The whole sheet, colours filled in."""
    text = _SHEET
    for name, colours in (("LIGHT", LIGHT), ("DARK", DARK)):
        text = text.replace(name, "".join(f"--c{place}:{colour};" for place, colour in enumerate(colours)))
    return text.strip()
