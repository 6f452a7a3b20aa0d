// Runs an action with an entered event, and lists its runs in logins.
import type { Context } from 'koa';
import { type FormattedTime, timesOf } from '../../../capabilities/pages/times.ts';
import { bodyTexts } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { callApi, callApiIfFound } from '../api-calls.ts';
import type { ConsoleSession } from '../console-page.ts';
import { withoutReturns } from '../forms.ts';
import { parseObject } from '../json-text.ts';
import { type ActionTab, declareActionTab, tabForm, tabPage } from './action.ts';
import { exampleEvent } from './console-action-templates.ts';
import { type ActionAnswer, type ActionsDependencies, isSupportedTrigger, triggerOf } from './view.ts';

interface TestAnswer {
  commands: { method: string; args: unknown[] }[];
  refused: string[];
  logs: { level: string; text: string }[];
  used?: { wallMs: number; cpuMs: number; memoryBytes: number; requests: number };
  error?: { msg: string };
}

interface TestModel {
  /** The event as JSON. */
  event: string | undefined;
  /** What a run did. */
  tried?: {
    commands: { method: string; args: string; isRefused: boolean }[];
    logs: { level: string; text: string }[];
    failure: string | undefined;
    used?: { time: number; cpu: number; memory: number; requests: number };
  };
}

export const ACTIONS_TEST_PAGE = declareActionTab<TestModel>('console/actions-test');

const TEST: ActionTab<TestModel> = {
  tab: 'test',
  page: ACTIONS_TEST_PAGE,
  scopes: ['read:actions', 'create:actions'],
  model: async (_deps, _ctx, _here, { action, values }) => {
    const trigger = triggerOf(action);
    const exampleText = isSupportedTrigger(trigger)
      ? JSON.stringify(exampleEvent(trigger), null, 2)
      : undefined;
    return { event: values?.event ?? exampleText };
  },
};

const enteredEvent = (ctx: Context) => ({ event: withoutReturns(bodyTexts(ctx).event ?? '') });

async function test(deps: ActionsDependencies, ctx: Context, session: ConsoleSession, { id }: ActionAnswer) {
  const values = enteredEvent(ctx);
  const parsed = parseObject(values.event);
  if ('fault' in parsed) return { refused: { status: 400, field: 'event', ...parsed.fault } };
  const input = { params: { id }, body: { payload: parsed.value } };
  const answer = await callApi(deps, ctx, session, 'POST /actions/actions/:id/test', input);
  const { commands, refused, logs, used, error } = (answer.body as { payload: TestAnswer }).payload;
  const tried = {
    commands: commands.map(({ method, args }) => ({
      method,
      args: args.map((one) => JSON.stringify(one)).join(', '),
      isRefused: [method, `${method}(${JSON.stringify(args[0])})`].some((one) => refused.includes(one)),
    })),
    logs,
    failure: error?.msg,
    ...(used && {
      used: {
        time: Math.round(used.wallMs),
        cpu: Math.round(used.cpuMs),
        memory: Math.ceil(used.memoryBytes / 1024 / 1024),
        requests: used.requests,
      },
    }),
  };
  return { result: { tried }, values };
}

interface ExecutionAnswer {
  id: string;
  trigger_id: string;
  status: string;
  created_at: string;
  results: { action_name: string; started_at: string; ended_at?: string; error?: { msg: string } }[];
}

/** How many log events are searched for executions, and how many runs are shown. */
const SEARCHED_EVENTS = '100';
const MAX_RUNS = 50;

interface RunsModel {
  runs: {
    execution: string;
    trigger: string;
    isSuspended: boolean;
    at: FormattedTime;
    /** Milliseconds. */
    took: number | undefined;
    failure: string | undefined;
  }[];
  /** The number of log events that were searched. */
  looked: string;
}

export const ACTIONS_RUNS_PAGE = declareActionTab<RunsModel>('console/actions-runs');

const RUNS: ActionTab<RunsModel> = {
  tab: 'runs',
  page: ACTIONS_RUNS_PAGE,
  scopes: ['read:actions', 'read:logs'],
  model: async (deps, ctx, session, { action }) => {
    const executions = await executionsOf(deps, ctx, session);
    const time = timesOf(deps, ctx);
    const runs = executions.flatMap(({ id, status, trigger_id, results }) =>
      results
        .filter((one) => one.action_name === action.name)
        .map((one) => ({
          execution: id,
          trigger: trigger_id,
          isSuspended: status === 'suspended',
          at: time(one.started_at),
          took:
            one.ended_at === undefined ? undefined : Date.parse(one.ended_at) - Date.parse(one.started_at),
          failure: one.error?.msg,
        })),
    );
    return { runs: runs.slice(0, MAX_RUNS), looked: SEARCHED_EVENTS };
  },
};

/** Returns the newest executions. Their ids come from the log, the rest from the Management API. */
async function executionsOf(
  deps: ActionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<ExecutionAnswer[]> {
  const answer = await callApi(deps, ctx, session, 'GET /logs', { query: { per_page: SEARCHED_EVENTS } });
  const events = answer.body as { details?: { actions?: { executions?: string[] } } }[];
  const ids = [...new Set(events.flatMap(({ details }) => details?.actions?.executions ?? []))];
  const found = await Promise.all(ids.map((id) => executionOf(deps, ctx, session, id)));
  return found.filter((one) => one !== undefined);
}

/** Returns an execution; undefined when it is no longer stored, or not yet. */
async function executionOf(
  deps: ActionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  id: string,
): Promise<ExecutionAnswer | undefined> {
  const answer = await callApiIfFound(deps, ctx, session, 'GET /actions/executions/:id', { params: { id } });
  return answer?.body as ExecutionAnswer | undefined;
}

const PATH = '/console/actions/:id';

export const runRoutes: RouteDeclarations<ActionsDependencies> = {
  [`GET ${PATH}/test`]: tabPage(TEST),
  // Counted as dangerous: the draft can read the action's secrets and use the network, so whoever runs it could send
  // them away.
  // docs/understand/decisions/console-account.md#test-runs-of-actions-in-the-console-require-a-fresh-login
  [`POST ${PATH}/test`]: tabForm(
    TEST,
    { scopes: ['create:actions'], isDangerous: true, entered: enteredEvent },
    test,
  ),
  [`GET ${PATH}/runs`]: tabPage(RUNS),
};
