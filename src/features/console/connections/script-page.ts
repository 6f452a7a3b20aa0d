// The editor of a connection's scripts, which can run them.
import type { Context } from 'koa';
import { AuthError } from '../../../http/errors.ts';
import { bodyTexts } from '../../../http/server/body.ts';
import { jsonOf } from '../../../runtime/json.ts';
import { callApi } from '../api-calls.ts';
import { redirectAfterForm } from '../console-page.ts';
import type { ConsoleSession } from '../console-session.ts';
import type { FormFault } from '../form-fault.ts';
import { fieldsBelow, refusalOf, refusalOptions, withoutReturns } from '../forms.ts';
import { syntaxFault } from '../json-text.ts';
import { declareConsolePage, type FaultyField, renderConsole } from '../render.ts';
import {
  type ScriptKind,
  scriptKinds,
  sourceOf,
  type TestRun,
  testRun,
  withSource,
} from './console-connection-scripts.ts';
import {
  type ConnectionFrame,
  type ConnectionsDependencies,
  connectionAt,
  headOf,
  recordOf,
  type ShownConnection,
} from './shared.ts';

export async function showScript(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const connection = await connectionAt(deps, ctx, session);
  await showEditor(deps, ctx, session, { connection, kind: kindAt(ctx, connection) });
}

/** Saves a script, or runs the entered script once. */
export async function submitScript(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const connection = await connectionAt(deps, ctx, session);
  const kind = kindAt(ctx, connection);
  const { source: sentSource = '', order } = bodyTexts(ctx);
  const source = withoutReturns(sentSource);
  const entered = fieldsBelow(ctx, 'argument.');
  const editor = { connection, kind, source, entered };
  if (order === 'run') return runScript(deps, ctx, session, editor);
  try {
    const options = withSource(connection.options, kind, source);
    await callApi(deps, ctx, session, 'PATCH /connections/:id', {
      params: { id: connection.id },
      body: { options },
    });
    redirectAfterForm(ctx, ctx.path, 'console.said.saved');
  } catch (thrown) {
    await showEditor(deps, ctx, session, { ...editor, fault: refusalOf(thrown) });
  }
}

interface Editor {
  connection: ShownConnection;
  kind: ScriptKind;
  source?: string;
  /** Arguments as entered, JSON, by name. */
  entered?: Readonly<Record<string, string>>;
  run?: TestRun;
  fault?: FormFault;
  /** Faults of arguments, by name. */
  faults?: Readonly<Record<string, FormFault>>;
}

async function runScript(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  editor: Editor & { source: string },
): Promise<void> {
  const { connection, kind, source, entered = {} } = editor;
  const texts = kind.parameters.map(({ name }) => [name, entered[name] ?? ''] as const);
  const invalid = texts.filter(([, text]) => jsonOf(text) === undefined);
  if (invalid.length > 0) {
    const faults = Object.fromEntries(invalid.map(([name, text]) => [name, syntaxFault(text)]));
    return showEditor(deps, ctx, session, { ...editor, faults });
  }
  const args = texts.map(([, text]) => jsonOf(text));
  const record = await recordOf(deps, connection);
  const run = await testRun(deps, { connection: record, kind, source, args });
  await showEditor(deps, ctx, session, { ...editor, run });
}

interface ConnectionsScriptModel extends ConnectionFrame {
  fault: FormFault | undefined;
  scripts: { name: string; path: string; isCurrent: boolean; isSet: boolean }[];
  script: string;
  action: string;
  changes: boolean;
  source: string;
  parameters: { name: string; value: string; fault: FormFault | undefined }[];
  run: TestRun | undefined;
}

export const CONNECTIONS_SCRIPT_PAGE = declareConsolePage<ConnectionsScriptModel>(
  'console/connections-script',
);

async function showEditor(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  { connection, kind, source, entered, run, fault, faults = {} }: Editor,
): Promise<void> {
  const head = headOf(session, connection, 'scripts');
  const scripts = scriptKinds(connection.strategy).map((one) => ({
    name: one.name,
    path: `${head.connection.path}/scripts/${one.name}`,
    isCurrent: one === kind,
    isSet: sourceOf(connection.options, one) !== '',
  }));
  await renderConsole(deps, ctx, session, {
    page: CONNECTIONS_SCRIPT_PAGE,
    title: { text: head.connection.title },
    ...refusalOptions(fault ?? Object.values(faults)[0], faultyOf(kind, faults)),
    model: {
      ...head,
      fault,
      scripts,
      script: kind.name,
      action: `${head.connection.path}/scripts/${kind.name}`,
      changes: kind.changes,
      source: source ?? sourceOf(connection.options, kind),
      parameters: kind.parameters.map(({ name, example }) => ({
        name,
        value: entered?.[name] ?? JSON.stringify(example, null, 2),
        fault: faults[name],
      })),
      run,
    },
  });
}

/** Returns the first faulty argument, or else the script. */
function faultyOf(
  { name, parameters }: ScriptKind,
  faults: Readonly<Record<string, FormFault>>,
): FaultyField {
  const found = parameters.find((one) => faults[one.name] !== undefined);
  return found === undefined
    ? { id: 'source', label: { text: name } }
    : { id: `argument-${found.name}`, label: { text: found.name } };
}

/** Returns the script of the request's path. @throws AuthError 404 */
function kindAt(ctx: Context, { strategy }: ShownConnection): ScriptKind {
  const found = scriptKinds(strategy).find(({ name }) => name === ctx.params.script);
  if (found === undefined) throw new AuthError(404, 'not_found', 'Not Found');
  return found;
}
