"""Everything that needs labels: data, views, the loop, the measure, the export."""
