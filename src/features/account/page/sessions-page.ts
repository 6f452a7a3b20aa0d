// /account/sessions: the user's sessions.

import { type FormatTime, type FormattedTime, timesOf } from '../../../capabilities/pages/times.ts';
import type { SessionDirectory, SessionView } from '../../../engine/session/session-directory.ts';
import { formFields } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { LOGOUT_SIGNED_OUT_PAGE } from '../../logout/logout-feature.ts';
import { accountEvents } from '../account-declaration.ts';
import { ACCOUNT } from './account-callbacks.ts';
import {
  type AccountPageDependencies,
  back,
  declareAccountPage,
  formRoute,
  pageRoute,
  renderAccount,
} from './account-page.ts';
import { endAccountSession, revokeLinksOf } from './account-session.ts';
import { type NoticeDependencies, recordChange } from './notices.ts';

export interface SessionsPageDependencies extends AccountPageDependencies, NoticeDependencies {
  sessionDirectory: SessionDirectory;
  /** Ends all sessions of a user but one, with their refresh tokens that outlive a logout. */
  endOtherSessions(userId: string, keepSid: string): Promise<void>;
}

const SECTION = '/sessions';

interface ShownSession {
  id: string;
  isHere: boolean;
  agent: { browser: string | undefined; system: string | undefined };
  address: string | undefined;
  used: FormattedTime | undefined;
  /** The names of the applications that were logged in to. */
  applications: string[];
}

export const OWN_SESSIONS_PAGE = declareAccountPage<{ sessions: ShownSession[] }>('own/sessions');

export const sessionsRoutes: RouteDeclarations<SessionsPageDependencies> = {
  [`GET ${ACCOUNT}${SECTION}`]: pageRoute(SECTION, async (deps, ctx, actor) => {
    const sessions = await deps.sessionDirectory.of(actor.user.id);
    const time = timesOf(deps, ctx);
    const models = await Promise.all(
      sessions.map((one) => sessionModel(deps, one, { sid: actor.login.id, time })),
    );
    const model = { sessions: models.sort((a, b) => Number(b.isHere) - Number(a.isHere)) };
    await renderAccount(deps, ctx, actor, { page: OWN_SESSIONS_PAGE, section: SECTION, model });
  }),
  [`POST ${ACCOUNT}${SECTION}`]: formRoute(SECTION, { act: 'session' }, async (deps, ctx, actor) => {
    const { session } = formFields(ctx, 'session');
    // Only a session in the user's own list can be ended.
    const found = (await deps.sessionDirectory.of(actor.user.id)).find(({ id }) => id === session);
    if (found === undefined) return back(ctx, SECTION);
    await deps.sessionDirectory.end(found.id);
    await revokeLinksOf(deps, actor.user.id);
    recordChange(deps, ctx, actor, { type: accountEvents.account_changed, description: 'one session ended' });
    if (found.id !== actor.login.id) return back(ctx, SECTION, 'sessionEnded');
    await endAccountSession(deps, ctx);
    await deps.views.page(ctx, LOGOUT_SIGNED_OUT_PAGE, {});
  }),
  [`POST ${ACCOUNT}${SECTION}/others`]: formRoute(SECTION, { act: 'session' }, async (deps, ctx, actor) => {
    await deps.endOtherSessions(actor.user.id, actor.login.id);
    await revokeLinksOf(deps, actor.user.id);
    recordChange(deps, ctx, actor, {
      type: accountEvents.account_changed,
      description: 'all other sessions ended',
    });
    back(ctx, SECTION, 'sessionsEnded');
  }),
};

async function sessionModel(
  { config }: SessionsPageDependencies,
  session: SessionView,
  { sid, time }: { sid: string; time: FormatTime },
): Promise<ShownSession> {
  const { id, device, created_at, last_interacted_at, clients } = session;
  const names = await Promise.all(
    clients.map(async ({ client_id }) => (await config.client(client_id))?.name ?? client_id),
  );
  return {
    id,
    isHere: id === sid,
    agent: agentName(device?.last_user_agent ?? ''),
    address: device?.last_ip,
    used: time(last_interacted_at ?? created_at),
    applications: names,
  };
}

// Names of browsers and systems, for display only.

const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(?:e|A|iOS)?\//, 'Edge'],
  [/\bOPR\/|\bOpera\b/, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\bFirefox\/|\bFxiOS\//, 'Firefox'],
  [/\bHeadlessChrome\/|\bChrome\/|\bCriOS\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
];

const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b|\bMacintosh\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
];

/** Returns the browser and the system that a `User-Agent` names; each undefined when it is not known. */
function agentName(userAgent: string): { browser: string | undefined; system: string | undefined } {
  const find = (known: typeof BROWSERS) => known.find(([sign]) => sign.test(userAgent))?.[1];
  return { browser: find(BROWSERS), system: find(SYSTEMS) };
}
