// Lists of URLs in the bodies of calls, whose entries may have wildcards.
import { z } from 'zod';
import { entryFault } from '../../records/clients/allowed-urls.ts';

const url = z.string().max(2048);

/**
 * Returns the schema of a list.
 * @param format what an entry is called in errors, as at the hosted service.
 * @param isTenants whether the list is the tenant's and not an application's.
 */
export function urlList(
  format: string,
  { entry = url, isTenants = false }: { entry?: z.ZodType<string>; isTenants?: boolean } = {},
) {
  const checked = entry.superRefine((text, { addIssue }) => {
    const fault = entryFault(text, { isTenants });
    const message = `Object didn't pass validation for format ${format}: ${text} (${fault})`;
    if (fault !== undefined) addIssue({ code: 'custom', message, input: text });
  });
  return z.array(checked).max(1000);
}
