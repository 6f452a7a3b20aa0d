// /console/security/keys: the keys that sign tokens.
import type { Context } from 'koa';
import { type FormattedTime, timesOf } from '../../../capabilities/pages/times.ts';
import { formFields } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { callApi } from '../api-calls.ts';
import { type ConsoleSession, consoleForm, consolePage, redirectAfterForm } from '../console-page.ts';
import { type FormFault, faultOf } from '../form-fault.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import type { SecuritySettingsDependencies } from './settings-pages.ts';
import { PARTS, pathOfPart, type SectionTab, tabsOf } from './tabs.ts';

/** A key as returned by the Management API. */
interface KeyAnswer {
  kid: string;
  alg: string;
  thumbprint: string;
  current?: boolean;
  current_since?: string;
  next?: boolean;
}

const PATH = pathOfPart('keys');
const UPDATE = 'update:signing_keys';

export const keysRoutes: RouteDeclarations<SecuritySettingsDependencies> = {
  [`GET ${PATH}` as const]: consolePage<SecuritySettingsDependencies>(
    'security',
    { scopes: PARTS.keys },
    (deps, ctx, session) => showKeys(deps, ctx, session),
  ),
  [`POST ${PATH}/rotate` as const]: keyForm(async (deps, ctx, session) => {
    const { alg } = formFields(ctx, 'alg');
    await callApi(deps, ctx, session, 'POST /keys/signing/rotate', { body: { alg } });
    return 'console.security.said.rotated';
  }),
  [`POST ${PATH}/revoke` as const]: keyForm(async (deps, ctx, session) => {
    const params = formFields(ctx, 'kid');
    await callApi(deps, ctx, session, 'PUT /keys/signing/:kid/revoke', { params });
    return 'console.security.said.revoked';
  }),
};

/** @param change returns the key of the message to show. */
function keyForm(
  change: (deps: SecuritySettingsDependencies, ctx: Context, session: ConsoleSession) => Promise<string>,
) {
  return consoleForm<SecuritySettingsDependencies>(
    'security',
    { scopes: [UPDATE], isDangerous: true },
    async (deps, ctx, session) => {
      let notice: string;
      try {
        notice = await change(deps, ctx, session);
      } catch (thrown) {
        return showKeys(deps, ctx, session, faultOf(thrown));
      }
      redirectAfterForm(ctx, PATH, notice);
    },
  );
}

interface SecurityKeysModel {
  tabs: SectionTab[];
  path: string;
  mayChange: boolean;
  algs: {
    alg: string;
    keys: { kid: string; alg: string; thumbprint: string; state: string; since?: FormattedTime }[];
  }[];
}

export const SECURITY_KEYS_PAGE = declareConsolePage<SecurityKeysModel>('console/security-keys');

async function showKeys(
  deps: SecuritySettingsDependencies,
  ctx: Context,
  session: ConsoleSession,
  fault?: FormFault,
): Promise<void> {
  const keys = (await callApi(deps, ctx, session, 'GET /keys/signing')).body as KeyAnswer[];
  const timeOf = timesOf(deps, ctx);
  const shown = keys.map(({ kid, alg, thumbprint, current, current_since: since, next }) => ({
    kid,
    alg,
    thumbprint,
    state: current === true ? 'current' : next === true ? 'next' : 'previous',
    ...(since !== undefined && { since: timeOf(since) }),
  }));
  await renderConsole(deps, ctx, session, {
    page: SECURITY_KEYS_PAGE,
    section: 'security',
    title: 't:console.security.keys',
    model: {
      tabs: tabsOf(session, 'keys'),
      path: PATH,
      mayChange: session.can(UPDATE),
      algs: [...new Set(keys.map(({ alg }) => alg))].map((alg) => ({
        alg,
        keys: shown.filter((key) => key.alg === alg),
      })),
    },
    ...(fault !== undefined && {
      status: fault.status,
      alert: fault.message === undefined ? 't:console.security.refused' : { text: fault.message },
    }),
  });
}
