// What the pages of branding share.
import type { Templates } from '../../../capabilities/delivery/delivery-templates.ts';
import type { OutgoingEmail, OutgoingSms } from '../../../capabilities/delivery/transport.ts';
import { languageNames } from '../../../http/languages.ts';
import { enabledLocales, FALLBACK } from '../../../tenant/languages.ts';
import type { ApiCallDependencies } from '../api-calls.ts';
import { CONSOLE } from '../console-callbacks.ts';
import type { ConsolePageDependencies } from '../console-page.ts';

export interface BrandingDependencies extends ConsolePageDependencies, ApiCallDependencies {
  templates: Pick<Templates, 'draft'>;
  /** Sends an e-mail immediately, without retries. @throws DeliveryError when the server does not accept it. */
  sendEmail(message: OutgoingEmail): Promise<void>;
  /** As {@link sendEmail}, for an SMS. */
  sendSms(message: OutgoingSms): Promise<void>;
  /** Counts a message to an address or number, whoever it belongs to. @throws AuthError 429 */
  limitDestination(destination: string): Promise<void>;
}

export const SECTION = 'branding';
export const PATH = `${CONSOLE}/branding` as const;

export interface ShownLanguage {
  tag: string;
  name: string;
  isEnabled: boolean;
}

/** Returns the languages of the pages, each named in itself; the tenant's come first. */
export function languagesOf({
  views,
  config,
}: Pick<BrandingDependencies, 'views' | 'config'>): ShownLanguage[] {
  const enabled = enabledLocales(config.settings().tenant);
  const tags = [...new Set([...enabled.filter((tag) => views.locales.has(tag)), ...views.locales.keys()])];
  return [...languageNames(tags)].map(([tag, name]) => ({ tag, name, isEnabled: enabled.includes(tag) }));
}

/** Returns the requested language if there is such a locale, or else the tenant's first. */
export function languageOf(deps: Pick<BrandingDependencies, 'views' | 'config'>, requested: unknown): string {
  const all = languagesOf(deps).map(({ tag }) => tag);
  return typeof requested === 'string' && all.includes(requested) ? requested : (all[0] ?? FALLBACK);
}
