// The TypeScript SDK's own client through `redial record`, beside the same client without it. Run by .ci/tap.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { execFileSync, spawn } from 'node:child_process';
import assert from 'node:assert/strict';

const { REDIAL, WORK, PYTHON, BASKET } = process.env;

function show(recording) {
  const doc = JSON.parse(execFileSync(REDIAL, ['show', recording, '--json'], { maxBuffer: 1 << 28 }));
  assert.deepEqual(doc.damaged, []);
  assert.equal(doc.lost, 0);
  return doc;
}

async function work(transport, calls) {
  const client = new Client({ name: 'tap-test', version: '1' });
  await client.connect(transport);
  const { tools } = await client.listTools();
  const answers = [];
  for (const [name, args] of calls) answers.push(await client.callTool({ name, arguments: args }));
  await client.close();
  return { tools, answers };
}

const stdio = (command) => new StdioClientTransport({ command: command[0], args: command.slice(1), stderr: 'ignore', env: process.env });
const http = (at) => new StreamableHTTPClientTransport(new URL(`http://${at}/mcp`));

function listening(command) {
  const child = spawn(command[0], command.slice(1), { stdio: ['ignore', 'ignore', 'pipe'] });
  return new Promise((done) => {
    let said = '';
    child.stderr.on('data', (chunk) => {
      said += chunk;
      const at = /listening on http:\/\/([^/]+)\//.exec(said);
      if (at) done([child, at[1]]);
    });
  });
}

// A handle in the server's memory: the same numbers in each new process.
const calls = [['create_basket', {}], ['add_item', { basket_id: 'bsk-1', sku: '本-42' }], ['add_item', { basket_id: 'nope', sku: 'x' }]];
{
  const command = [PYTHON, BASKET];
  const recording = `${WORK}/ts-stdio.jsonl`;
  const direct = await work(stdio(command), calls);
  const tapped = await work(stdio([REDIAL, 'record', '--out', recording, '--', ...command]), calls);
  assert.deepEqual(tapped, direct);
  assert.deepEqual(show(recording).calls.map((c) => c.outcome), ['ok', 'ok', 'tool_error']);
  console.log('ok: TypeScript SDK client through the tap on stdio');
}
{
  const [server, upstream] = await listening([REDIAL, 'serve', 'tickets', '--ledger', `${WORK}/ts.db`, '--http', '127.0.0.1:0']);
  const recording = `${WORK}/ts-http.jsonl`;
  const [tap, here] = await listening([REDIAL, 'record', '--out', recording, '--http', `http://${upstream}/mcp`, '--listen', '127.0.0.1:0']);
  const ask = [['find_request', { request_id: 'nobody' }]];
  const direct = await work(http(upstream), ask);
  const tapped = await work(http(here), ask);
  assert.deepEqual(tapped, direct);
  tap.kill('SIGTERM');
  await new Promise((done) => tap.on('exit', done));
  server.kill('SIGKILL');
  assert.deepEqual(show(recording).calls.map((c) => c.outcome), ['ok']);
  console.log('ok: TypeScript SDK client through the tap on HTTP');
}
