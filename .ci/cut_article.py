"""Cuts the article's ledger.py and server.py out of its text: cut_article.py ARTICLE FOLDER.

Each file runs from its own docstring to the prose that follows it. Nothing is changed, so that what the
interop tests talk to is the article's server and not ours.
"""
import pathlib
import sys

text = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
folder = pathlib.Path(sys.argv[2])
for name, first, after in (
    ("ledger.py", '"""request_id ごとに作成を1回だけ行う冪等性の台帳', "処理の流れは"),
    ("server.py", '"""ticket-ledger: 接続断の後の再実行を安全にした MCP サーバー"""', "create_ticket には idempotentHint=True"),
):
    start = text.index(first)
    end = text.index(after, start)
    source = text[start:end].rstrip() + "\n"
    compile(source, name, "exec")
    (folder / name).write_text(source, encoding="utf-8")
    print(f"{name}: {source.count(chr(10))} lines")
