// The page of recent runs of scripts: what they printed and used. For this machine only, see feature.ts.

import type { Context } from 'koa';
import { declarePage, type Views } from '../../capabilities/pages/views.ts';
import type { ScriptFailure, ScriptLine } from '../../capabilities/scripts/limits.ts';
import type { LoggedRun } from '../../capabilities/scripts/requests.ts';
import type { Scripts } from '../../capabilities/scripts/scripts.ts';
import { httpLimits } from '../../http/limits.ts';
import type { RouteDeclarations } from '../../http/server/router.ts';

/** Path of the page; with `.json` appended it returns the runs as data. */
export const SCRIPTS_PATH = '/dev/scripts';

export interface ScriptLogDependencies {
  scripts: Pick<Scripts, 'log'>;
  views: Views;
}

const page = { limit: httpLimits.other, cors: 'none', errors: 'page' } as const;

/** The routes of the page. What scripts print may contain tokens, so the caller restricts them to this machine. */
export const scriptRoutes: RouteDeclarations<ScriptLogDependencies> = {
  'GET /dev/scripts.json': { ...page, handle: listRuns },
  'GET /dev/scripts': { ...page, handle: showRuns },
};

/** Returns the runs of the connection that the query names, or all; newest first. */
function runsOf({ scripts }: ScriptLogDependencies, ctx: Context): LoggedRun[] {
  const { connection } = ctx.query;
  return scripts.log.runs().filter((run) => typeof connection !== 'string' || run.of === connection);
}

function runModel({ at, of, entry, printed, used, failure }: LoggedRun) {
  const { wallMs, cpuMs, memoryBytes, requests } = used;
  return {
    at: new Date(at).toISOString(),
    connection: of,
    script: entry,
    log: printed,
    used: {
      time_ms: Math.round(wallMs),
      cpu_ms: Math.round(cpuMs),
      memory_mib: Math.ceil(memoryBytes / 1024 / 1024),
      requests,
    },
    ...(failure && { failure }),
  };
}

function listRuns(deps: ScriptLogDependencies, ctx: Context): void {
  ctx.set('Cache-Control', 'no-store');
  ctx.body = runsOf(deps, ctx).map(runModel);
}

interface DevelopmentScriptsModel {
  runs: {
    at: string;
    connection: string;
    script: string;
    log: ScriptLine[];
    used: { time_ms: number; cpu_ms: number; memory_mib: number; requests: number };
    failure?: ScriptFailure;
  }[];
}

export const DEVELOPMENT_SCRIPTS_PAGE = declarePage<DevelopmentScriptsModel>('development/scripts');

async function showRuns(deps: ScriptLogDependencies, ctx: Context): Promise<void> {
  await deps.views.page(ctx, DEVELOPMENT_SCRIPTS_PAGE, { runs: runsOf(deps, ctx).map(runModel) });
}
