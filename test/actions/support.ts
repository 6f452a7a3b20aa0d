// Actions as operators put them into force: made, deployed and bound through the Management API.
import { expect } from 'chai';
import { managementToken } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import type { TestServer } from '../support/server.ts';
import { PATIENCE } from '../support/wait-until.ts';

/** An action as a test writes it. */
export interface TestAction {
  name?: string;
  code: string;
  secrets?: Record<string, string>;
  on_error?: 'continue';
}

/** Returns the code of an action of post-login. */
export function postLogin(body: string): string {
  return `exports.onExecutePostLogin = async (event, api) => {\n${body}\n};`;
}

/** Calls the Management API. */
export async function managed(server: TestServer, method: string, path: string, body?: object) {
  const answer = await fetch(`${server.url}/api/v2${path}`, {
    method,
    headers: {
      authorization: `Bearer ${await managementToken(server)}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, body: text === '' ? {} : JSON.parse(text) };
}

/** Makes names unique. */
let made = 0;

/** Makes actions, deploys them and binds them to a trigger, in order. @returns their ids. */
export async function bindActions(
  server: TestServer,
  trigger: string,
  ...actions: TestAction[]
): Promise<string[]> {
  const ids: string[] = [];
  const bindings: object[] = [];
  for (const [
    index,
    { name = `${trigger} ${index} ${++made}`, code, secrets = {}, on_error },
  ] of actions.entries()) {
    const answer = await managed(server, 'POST', '/actions/actions', {
      name,
      code,
      supported_triggers: [{ id: trigger, version: 'v3' }],
      secrets: Object.entries(secrets).map(([key, value]) => ({ name: key, value })),
    });
    expect(answer.status, JSON.stringify(answer.body)).to.equal(201);
    await managed(server, 'POST', `/actions/actions/${answer.body.id}/deploy`);
    ids.push(answer.body.id);
    bindings.push({ ref: { type: 'action_id', value: answer.body.id }, ...(on_error && { on_error }) });
  }
  const bound = await managed(server, 'PATCH', `/actions/triggers/${trigger}/bindings`, { bindings });
  expect(bound.status, JSON.stringify(bound.body)).to.equal(200);
  return ids;
}

/** Returns the log events about actions, newest last. */
export async function actionFailures(server: TestServer): Promise<string[]> {
  const { records } = await server.store.collection('logs').list({ limit: 1000 });
  return records
    .filter(({ type }) => type === 'actions_execution_failed')
    .map(({ description = '' }) => description);
}

/** Returns the log events of a type, newest last. */
export async function eventsOf(server: TestServer, type: string) {
  const { records } = await server.store.collection('logs').list({ limit: 1000 });
  return records.filter((one) => one.type === type);
}

/** Returns what scripts have printed. @param text waits until it is there. @throws Error when it is not in time. */
export async function printed(server: TestServer, text = ''): Promise<string> {
  for (const deadline = performance.now() + PATIENCE; performance.now() < deadline; ) {
    const runs = (await createAgent(server).get('/dev/scripts.json')).json() as { log: { text: string }[] }[];
    const all = runs.flatMap(({ log }) => log.map((line) => line.text)).join('\n');
    if (all.includes(text)) return all;
    // Not sooner, because the page has the limit of all pages.
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`no script has printed ${text}`);
}
