// Which second factors an export has switched off: nothing follows from their settings.

/** Returns whether the export says that a second factor is off. @param name as in `guardianFactors`. */
export function isFactorOff({ guardianFactors }: Readonly<Record<string, unknown>>, name: unknown): boolean {
  if (!Array.isArray(guardianFactors)) return false;
  const factors = guardianFactors as ({ name?: unknown; enabled?: unknown } | null)[];
  return !factors.some((factor) => factor?.name === name && factor?.enabled !== false);
}
