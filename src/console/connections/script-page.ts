// The editor of a connection's scripts, with a test run.
import type { Context } from 'koa';
import { bodyTexts } from '../../http/body-fields.ts';
import { AuthError } from '../../http/errors.ts';
import { jsonOf } from '../../runtime/json.ts';
import { ask } from '../ask.ts';
import { fieldsBelow, refusalOf, withoutReturns } from '../forms.ts';
import { back } from '../page.ts';
import { renderConsole, type Words } from '../render.ts';
import type { AtConsole } from '../session.ts';
import { type ScriptKind, scriptKinds, sourceOf, type TestRun, testRun, withSource } from './scripts.ts';
import {
  type ConnectionsDependencies,
  connectionAt,
  headOf,
  recordOf,
  type ShownConnection,
} from './shared.ts';

/** Shows a script. */
export async function showScript(
  deps: ConnectionsDependencies,
  ctx: Context,
  here: AtConsole,
): Promise<void> {
  const connection = await connectionAt(deps, ctx, here);
  await showEditor(deps, ctx, here, { connection, kind: kindAt(ctx, connection) });
}

/** Keeps a script, or runs it once as it was typed. */
export async function takeScript(
  deps: ConnectionsDependencies,
  ctx: Context,
  here: AtConsole,
): Promise<void> {
  const connection = await connectionAt(deps, ctx, here);
  const kind = kindAt(ctx, connection);
  const { source: sent = '', order } = bodyTexts(ctx);
  const source = withoutReturns(sent);
  const typed = fieldsBelow(ctx, 'argument.');
  const editor = { connection, kind, source, typed };
  if (order === 'run') return runScript(deps, ctx, here, editor);
  try {
    const options = withSource(connection.options, kind, source);
    await ask(deps, ctx, here, 'PATCH /connections/:id', {
      params: { id: connection.id },
      body: { options },
    });
    back(ctx, ctx.path, 'console.said.saved');
  } catch (thrown) {
    await showEditor(deps, ctx, here, { ...editor, alert: refusalOf(thrown) });
  }
}

interface Editor {
  connection: ShownConnection;
  kind: ScriptKind;
  source?: string;
  /** Arguments, JSON, by their names. */
  typed?: Readonly<Record<string, string>>;
  run?: TestRun;
  alert?: Words;
}

async function runScript(
  deps: ConnectionsDependencies,
  ctx: Context,
  here: AtConsole,
  editor: Editor & { source: string },
): Promise<void> {
  const { connection, kind, source, typed = {} } = editor;
  const args = kind.parameters.map(({ name }) => jsonOf(typed[name] ?? ''));
  if (args.some((one) => one === undefined))
    return showEditor(deps, ctx, here, { ...editor, alert: 't:console.connections.script.noJson' });
  const record = await recordOf(deps, connection);
  const run = await testRun(deps.scripts, { connection: record, kind, source, args });
  await showEditor(deps, ctx, here, { ...editor, run });
}

async function showEditor(
  deps: ConnectionsDependencies,
  ctx: Context,
  here: AtConsole,
  { connection, kind, source, typed, run, alert }: Editor,
): Promise<void> {
  const head = headOf(here, connection, 'scripts');
  const scripts = scriptKinds(connection.strategy).map((one) => ({
    name: one.name,
    path: `${head.connection.path}/scripts/${one.name}`,
    isCurrent: one === kind,
    isSet: sourceOf(connection.options, one) !== '',
  }));
  await renderConsole(deps, ctx, here, {
    template: 'console/connections-script',
    title: { text: head.connection.title },
    alert,
    status: alert === undefined ? 200 : 400,
    model: {
      ...head,
      scripts,
      script: kind.name,
      action: `${head.connection.path}/scripts/${kind.name}`,
      changes: kind.changes,
      source: source ?? sourceOf(connection.options, kind),
      parameters: kind.parameters.map(({ name, example }) => ({
        name,
        value: typed?.[name] ?? JSON.stringify(example, null, 2),
      })),
      run,
    },
  });
}

/** The script of an address. @throws AuthError 404 */
function kindAt(ctx: Context, { strategy }: ShownConnection): ScriptKind {
  const found = scriptKinds(strategy).find(({ name }) => name === ctx.params.script);
  if (found === undefined) throw new AuthError(404, 'not_found', 'Not Found');
  return found;
}
