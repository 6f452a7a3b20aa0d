// Home realm discovery on the login page: an e-mail address leads to the connection of its domain, or to the password form.
// The answer depends on the domain alone, so it does not reveal whether there is an account.
import type { Context } from 'koa';
import { feature } from '../../../engine/feature.ts';
import { formFields } from '../../../http/body-fields.ts';
import { PAGE } from '../../../http/routes.ts';
import { firstCode } from '../../../records/database-options.ts';
import { waitsForLogin } from '../../flow/next.ts';
import { openRequestPage, type RequestPage, stepPath } from '../../flow/request-page.ts';
import type { ShowNext } from '../../flow/routes.ts';
import { codeStep } from '../passwordless/session-code.ts';
import { asksIdentifierFirst, connectionOf, isHomeRealm } from '../request-connections.ts';
import { type ProviderRedirectDependencies, redirectToProvider } from '../upstream/redirect-to-provider.ts';
import { showIdentifier } from './page.ts';
import { type WebFingerDependencies, webFinger } from './webfinger.ts';

interface IdentifierDependencies extends ProviderRedirectDependencies, Pick<WebFingerDependencies, 'issuer'> {
  showNext: ShowNext;
}

/** Characters: the longest e-mail address (RFC 5321 §4.5.3.1). Other identifiers are shorter. */
const MAX_IDENTIFIER_LENGTH = 254;

export const identifier = feature<IdentifierDependencies>({
  name: 'identifier',
  routes: {
    'GET /u/:uid/identifier': {
      ...PAGE,
      handle: async (deps, ctx) => deps.showNext(ctx, await openRequestPage(deps, ctx), 'identifier'),
    },
    'POST /u/:uid/identifier': { ...PAGE, handle: handleIdentifier },
    'GET|HEAD /.well-known/webfinger': webFinger,
  },
  pages: ['login/identifier'],
});

async function handleIdentifier(deps: IdentifierDependencies, ctx: Context): Promise<void> {
  const page = await openRequestPage(deps, ctx);
  deps.csrf.verify(ctx);
  const { pending } = page;
  if (!waitsForLogin(pending) || !(await asksIdentifierFirst(deps.config, page))) {
    return deps.showNext(ctx, page);
  }
  const text = formFields(ctx, 'identifier').identifier.trim().slice(0, MAX_IDENTIFIER_LENGTH);
  const showError = (alert: string) => showIdentifier(deps, ctx, page, { identifier: text, alert });
  if (text === '') return showError('identifier.missing');
  const found = await connectionOf(deps.config, page, text);
  if (found === undefined) return deps.showNext(ctx, page);
  const { connection, strategy } = found;
  if (strategy.page === 'redirect') {
    // All connections are at external providers, and the address has the domain of none of them.
    if (!(await isHomeRealm(deps.config, page, connection, text))) return showError('identifier.unknown');
    return redirectToProvider(deps, ctx, withLoginHint(page, text), { connection, strategy });
  }
  await deps.interactions.remember(ctx, { ...pending.remembered, identifier: text });
  ctx.status = 303;
  const code = strategy.page === 'form' ? firstCode(connection, text) : undefined;
  const form = code === undefined ? 'login' : codeStep(connection, code);
  ctx.redirect(stepPath(pending, strategy.page === 'form' ? form : strategy.step(connection)));
}

/** Returns the request with the identifier as its `login_hint`. */
function withLoginHint(page: RequestPage, identifier: string): RequestPage {
  const { pending } = page;
  return { ...page, pending: { ...pending, params: { ...pending.params, login_hint: identifier } } };
}
