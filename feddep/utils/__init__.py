"""What every other package uses: errors, files, random streams, progress bars, validated
parameters.
"""
