// /console/security: redirects to the first part that the administrator may see.

import type { Context } from 'koa';
import { bodyTexts } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { roleRefusal } from '../../management/roles/administrator-roles.ts';
import { callApi } from '../api-calls.ts';
import { type ConsoleSession, consoleForm, consolePage, redirectAfterForm } from '../console-page.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import { blockedRoutes } from './blocked.ts';
import { keysRoutes } from './console-security-keys.ts';
import { type SecuritySettingsDependencies, settingsRoutes } from './settings-pages.ts';
import { PARTS, pathOfPart, SECURITY, type SectionTab, tabsOf } from './tabs.ts';

// /console/security/factors: which second factors are enabled, and when one is required.

interface Factor {
  name: string;
  enabled: boolean;
}

const PATH = pathOfPart('factors');
/** A factor that the API lists but this server does not have. */
const UNSUPPORTED_FACTOR = 'duo';
/** When a second factor is required: never, at every login, or unless the browser or address is known. */
const POLICIES = ['never', 'all-applications', 'confidence-score'] as const;

const factorsRoutes: RouteDeclarations<SecuritySettingsDependencies> = {
  [`GET ${PATH}` as const]: consolePage('security', { scopes: PARTS.factors }, showFactors),
  [`POST ${PATH}` as const]: consoleForm(
    'security',
    { scopes: ['update:guardian_factors', 'update:mfa_policies'], isDangerous: true },
    saveFactors,
  ),
};

async function factorsOf(deps: SecuritySettingsDependencies, ctx: Context, session: ConsoleSession) {
  const [factors, policies] = await Promise.all([
    callApi(deps, ctx, session, 'GET /guardian/factors'),
    callApi(deps, ctx, session, 'GET /guardian/policies'),
  ]);
  const [policy = POLICIES[0]] = policies.body as string[];
  return { factors: (factors.body as Factor[]).filter(({ name }) => name !== UNSUPPORTED_FACTOR), policy };
}

interface SecurityFactorsModel {
  tabs: SectionTab[];
  path: string;
  mayChange: boolean;
  factors: { name: string; enabled: boolean; text: string }[];
  policies: { name: string; text: string; isCurrent: boolean }[];
  isOpen: boolean;
}

export const SECURITY_FACTORS_PAGE = declareConsolePage<SecurityFactorsModel>('console/security-factors');

async function showFactors(
  deps: SecuritySettingsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const { factors, policy } = await factorsOf(deps, ctx, session);
  await renderConsole(deps, ctx, session, {
    page: SECURITY_FACTORS_PAGE,
    section: 'security',
    title: 't:console.security.factors',
    model: {
      tabs: tabsOf(session, 'factors'),
      path: PATH,
      mayChange: session.can('update:guardian_factors') && session.can('update:mfa_policies'),
      factors: factors.map((one) => ({ ...one, text: `console.security.factor.${one.name}` })),
      policies: POLICIES.map((name) => ({
        name,
        text: `console.security.policy.${name}`,
        isCurrent: name === policy,
      })),
      // Users must use a second factor, but none is enabled.
      isOpen: policy !== 'never' && factors.every(({ enabled }) => !enabled),
    },
  });
}

async function saveFactors(
  deps: SecuritySettingsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const sent = bodyTexts(ctx);
  const { factors, policy } = await factorsOf(deps, ctx, session);
  for (const { name, enabled } of factors) {
    const isOn = sent[`factor-${name}`] === 'on';
    // Unchanged factors are skipped, so that the log only contains changes.
    if (isOn === enabled) continue;
    const input = { params: { name }, body: { enabled: isOn } };
    await callApi(deps, ctx, session, 'PUT /guardian/factors/:name', input);
  }
  const chosen = POLICIES.find((one) => one === sent.policy) ?? policy;
  if (chosen !== policy)
    await callApi(deps, ctx, session, 'PUT /guardian/policies', { body: chosen === 'never' ? [] : [chosen] });
  redirectAfterForm(ctx, PATH, 'console.said.saved');
}

export type SecurityDependencies = SecuritySettingsDependencies;

export const securityRoutes: RouteDeclarations<SecurityDependencies> = {
  [`GET ${SECURITY}` as const]: consolePage('security', { scopes: [] }, async (_deps, ctx, session) => {
    const [first] = tabsOf(session);
    if (first === undefined) throw roleRefusal();
    redirectAfterForm(ctx, first.path);
  }),
  ...factorsRoutes,
  ...settingsRoutes,
  ...blockedRoutes,
  ...keysRoutes,
};
